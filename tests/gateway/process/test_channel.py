"""The channel between two processes: messages, and the report of lost messages."""

import asyncio
import socket

import pytest

from gateway.base.span import Span, SpanKind
from gateway.process import channel
from gateway.process.channel import Channel, Counted, Ready, Traced
from gateway.usage.delta import CounterDelta, Delta


def counted(times: int, label: str = "") -> Counted:
    return Counted(Delta(1.0, [], [], [CounterDelta("shed", (label,), times)], [], []))


async def test_lost_counts_are_reported_with_the_next_counts(
    monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    monkeypatch.setattr(channel, "_MAX_WAITING", 1000)
    ours, theirs = socket.socketpair()
    worker, supervisor = await Channel.over(ours), await Channel.over(theirs)
    sent = 0
    while not events:  # nobody reads: first the socket fills up, then the buffer
        sent += 1
        worker.send(counted(sent, "x" * 100_000))
    worker.send(Ready())  # other messages still have room
    for times in range(1, sent):
        message = await supervisor.receive()
        assert isinstance(message, Counted)
        assert message.delta.counts[0].count == times
        assert not message.delta.lost
    assert await supervisor.receive() == Ready()
    worker.send(counted(1))
    worker.send(counted(2))
    for times in (1, 2):
        message = await supervisor.receive()
        assert isinstance(message, Counted)
        assert (message.delta.counts[0].count, message.delta.lost) == (times, times == 1)
    await worker.close()
    assert await supervisor.receive() is None
    await supervisor.close()
    assert events == ["delta_lost"]


async def test_spans_that_are_refused_leave_room_for_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel, "_MAX_BEFORE_SPANS", 1000)
    ours, theirs = socket.socketpair()
    worker, supervisor = await Channel.over(ours), await Channel.over(theirs)
    traced = Traced([Span("1" * 32, "2" * 16, "", "x" * 100_000, SpanKind.SERVER, 1, 2, {})])
    sent = 0
    while worker.send(traced):  # nobody reads: first the socket fills up, then the buffer
        sent += 1
    assert worker.send(counted(1))
    assert [await supervisor.receive() for _ in range(sent)] == [traced] * sent
    assert await supervisor.receive() == counted(1)
    await worker.close()
    await supervisor.close()


async def test_a_message_is_received_after_a_cancelled_wait() -> None:
    ours, theirs = socket.socketpair()
    sender, receiver = await Channel.over(ours), await Channel.over(theirs)
    content = channel._encode(Ready())
    for part in (len(content).to_bytes(4)[:2], len(content).to_bytes(4)[2:], content[:3]):
        sender._writer.write(part)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await receiver.receive()
    sender._writer.write(content[3:])
    assert await receiver.receive() == Ready()
    await sender.close()
    await receiver.close()
