"""Since when the database is not reached, what was met, and when it has all again."""

import asyncio

import pytest

from gateway.store.fleet import contact as contact_module
from gateway.store.fleet.contact import Contact
from gateway.usage.state_changes import StateBusyError, StateError, StateUnreachableError


async def test_it_is_stale_since_it_was_heard(events: list[str]) -> None:
    contact = Contact("postgresql://db/one", lambda: 50.0)
    async with contact.reading():
        pass
    assert contact.missed(StateError("refused")) == 50.0
    assert contact.stale_reason == "refused"
    contact.reached(60.0)
    assert contact.stale_reason == ""
    # What was counted meanwhile comes with the next beat.
    found = [(contact.stale_since, contact.behind)]
    async with contact.reading():
        pass
    contact.reached(61.0)
    found.append((contact.stale_since, contact.behind))
    assert found == [(None, True), (None, False)]
    assert contact.missed(StateUnreachableError("gone")) == 61.0
    assert contact.missed(StateError("other")) == 61.0
    assert (contact.behind, contact.stale_reason) == (True, "other")
    with pytest.raises(StateError, match="other"):
        async with contact.reading():
            pass
    assert events == ["state_unwritten", "state_written", "state_unwritten"]


async def test_who_has_no_turn_in_time_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    contact = Contact("postgresql://db/one", lambda: 50.0)
    over, within = asyncio.Event(), asyncio.Semaphore(0)

    async def read() -> None:
        async with contact.reading():
            within.release()
            await over.wait()

    readers = [asyncio.create_task(read()) for _ in range(2)]
    for _ in readers:
        await within.acquire()
    third = asyncio.create_task(read())
    await asyncio.sleep(0)  # it waits
    with monkeypatch.context() as patch:
        patch.setattr(contact_module, "_PATIENCE", 0.01)
        with pytest.raises(StateBusyError, match=r"one: 2 others have read for 0\.01 s; ask again"):
            await read()
    over.set()
    await asyncio.gather(*readers, third)
    async with asyncio.TaskGroup() as both:  # each turn was given back
        both.create_task(read())
        both.create_task(read())
