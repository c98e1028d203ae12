"""Since when the database is not reached, what was met, and when it has all again."""

import pytest

from gateway.state.fleet.contact import Contact
from gateway.state.state_changes import StateError, StateUnreachableError
from gateway.telemetry import log


async def test_it_is_stale_since_it_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(log, "event", lambda name, *_, **__: events.append(name))
    contact = Contact("postgresql://db/one", lambda: 50.0)
    async with contact.reading():
        pass
    assert contact.missed(StateError("refused")) == 50.0
    contact.reached(60.0)
    # What was counted meanwhile comes with the next beat.
    found = [(contact.stale_since, contact.behind)]
    async with contact.reading():
        pass
    contact.reached(61.0)
    found.append((contact.stale_since, contact.behind))
    assert found == [(None, True), (None, False)]
    assert contact.missed(StateUnreachableError("gone")) == 61.0
    assert contact.missed(StateError("other")) == 61.0
    assert contact.behind
    with pytest.raises(StateError, match="other"):
        async with contact.reading():
            pass
    assert events == ["state_unwritten", "state_written", "state_unwritten"]
