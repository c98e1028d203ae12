"""Writes of an event loop iteration are sent at its end, in order and without loss."""

import asyncio
from typing import Any, cast

import pytest

from gateway.http.transport import BatchingTransport, WriteBatch


class Sent(asyncio.Transport):
    """A transport that records its calls in a list that it shares with others."""

    def __init__(self, name: str, done: list[str]) -> None:
        super().__init__({"socket": name})
        self._name, self._done = name, done
        self._closing = False

    def write(self, data: Any) -> None:
        self._done.append(f"{self._name} {len(data) if len(data) > 9 else data.decode()}")

    def close(self) -> None:
        self._done.append(f"{self._name} close")
        self._closing = True

    def abort(self) -> None:
        self._done.append(f"{self._name} abort")
        self._closing = True

    def write_eof(self) -> None:
        self._done.append(f"{self._name} eof")

    def is_closing(self) -> bool:
        return self._closing

    def get_write_buffer_size(self) -> int:
        return 100

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._done.append(f"{self._name} limits {high} {low}")

    def pause_reading(self) -> None:
        self._done.append(f"{self._name} pause")

    def resume_reading(self) -> None:
        self._done.append(f"{self._name} resume")


class Turn:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.writes: WriteBatch = []

    def transport(self, name: str) -> BatchingTransport:
        return BatchingTransport(Sent(name, self.done), self.writes)


async def test_writes_are_sent_in_order_at_the_end_of_the_iteration() -> None:
    turn = Turn()
    one, two = turn.transport("1"), turn.transport("2")
    one.write_soon(b"a")
    two.write_soon(b"b")
    assert turn.done == []
    await asyncio.sleep(0)
    assert turn.done == ["1 a", "2 b"]
    two.write_soon(b"c")
    await asyncio.sleep(0)
    assert turn.done == ["1 a", "2 b", "2 c"]


async def test_a_second_write_in_an_iteration_is_sent_at_once_after_the_first() -> None:
    turn = Turn()
    one = turn.transport("1")
    for data in (b"a", b"b", b"c"):
        one.write_soon(data)
    assert turn.done == ["1 a", "1 b"]
    await asyncio.sleep(0)
    assert turn.done == ["1 a", "1 b", "1 c"]


async def test_a_large_write_is_sent_at_once_after_the_delayed_bytes() -> None:
    turn = Turn()
    one = turn.transport("1")
    one.write_soon(b"a" * 65_537)
    assert turn.done == ["1 65537"]
    one.write_soon(b"b")
    one.write_soon(b"c" * 65_537)
    assert turn.done == ["1 65537", "1 b", "1 65537"]


async def test_at_most_64_transports_delay_their_bytes() -> None:
    turn = Turn()
    for number in range(65):
        turn.transport(str(number)).write_soon(b"a")
    assert turn.done == [f"{number} a" for number in range(64)]
    await asyncio.sleep(0)
    assert len(turn.done) == 65


@pytest.mark.parametrize(
    ("then", "done"),
    [
        (lambda one: one.write(b"b"), ["1 a", "1 b"]),
        (lambda one: one.close(), ["1 a", "1 close"]),
        (lambda one: one.write_eof(), ["1 a", "1 eof"]),
        (lambda one: one.set_write_buffer_limits(0), ["1 a", "1 limits 0 None"]),
        (lambda one: one.abort(), ["1 abort"]),
        (lambda one: one.pause_reading(), ["1 pause", "1 a"]),
        (lambda one: one.resume_reading(), ["1 resume", "1 a"]),
    ],
    ids=["write", "close", "eof", "limits", "abort", "pause", "resume"],
)
async def test_other_calls_take_effect_after_the_delayed_bytes(then: Any, done: list[str]) -> None:
    turn = Turn()
    one = turn.transport("1")
    one.write_soon(b"a")
    then(one)
    await asyncio.sleep(0)
    assert turn.done == done


async def test_a_transport_that_has_closed_sends_nothing() -> None:
    turn = Turn()
    sent = Sent("1", turn.done)
    one = BatchingTransport(cast(asyncio.Transport, sent), turn.writes)
    one.write_soon(b"a")
    sent.abort()
    await asyncio.sleep(0)
    assert one.is_closing()
    assert turn.done == ["1 abort"]


async def test_a_failing_transport_does_not_prevent_the_others_from_sending() -> None:
    turn = Turn()
    broken = Sent("1", turn.done)
    broken.write = {}.__getitem__  # type: ignore[method-assign, assignment]  # raises KeyError
    for own in (broken, Sent("2", turn.done)):
        BatchingTransport(own, turn.writes).write_soon(b"a")
    await asyncio.sleep(0)
    assert turn.done == ["1 abort", "2 a"]


async def test_delayed_bytes_count_as_unsent() -> None:
    turn = Turn()
    one = turn.transport("1")
    assert one.get_write_buffer_size() == 100
    one.write_soon(b"abc")
    assert one.get_write_buffer_size() == 103
    await asyncio.sleep(0)
    assert one.get_write_buffer_size() == 100
    assert one.get_extra_info("socket") == "1"
    assert one.get_extra_info("peername", "none") == "none"
