"""A replica's own disk: one that does not answer keeps neither beats nor the process waiting."""

import asyncio
import threading
from collections.abc import Callable
from threading import Event

import pytest

from gateway.store.fleet.kept import own_disk
from gateway.store.fleet.kept.own_disk import OwnDisk
from tests.gateway.kit import DEADLINE
from tests.gateway.talk import soon


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Event:
    monkeypatch.setattr(own_disk, "_PATIENCE", 0.05)
    monkeypatch.setattr(own_disk, "_LONG", 0.0)
    return Event()


async def test_a_disk_that_does_not_answer_is_left_to_itself(answers: Event) -> None:
    reasons: list[str] = []
    begun: list[int] = []
    before = set(threading.enumerate())
    disk = OwnDisk(reasons.append)

    def write(number: int) -> Callable[[], None]:
        def hang() -> None:
            begun.append(number)
            assert answers.wait(DEADLINE)

        return hang

    async with asyncio.timeout(DEADLINE):
        assert not await disk.write(write(1))
        assert not await disk.write(write(2))
        assert reasons == ["the disk does not answer"]
        assert all(each.daemon for each in set(threading.enumerate()) - before)
        answers.set()
        await soon(lambda: not disk.busy)
        assert await disk.write(write(3))
    assert begun == [1, 3]


async def test_an_error_of_a_write_is_that_of_its_caller(answers: Event) -> None:
    def fail() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        await OwnDisk(print).write(fail)


async def test_where_no_thread_is_to_be_had(
    answers: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    reasons: list[str] = []
    disk = OwnDisk(reasons.append)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        assert not await disk.write(answers.set)
    assert reasons == ["can't start new thread"]
    assert await disk.write(answers.set)
