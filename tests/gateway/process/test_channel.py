"""What goes through between two processes, and what is told of what does not."""

import asyncio
import socket

import pytest

from gateway.base.span import Span, SpanKind
from gateway.process import channel
from gateway.process.channel import Channel, Counted, Ready, Traced
from gateway.usage.delta import CounterDelta, Delta


def counted(times: int, label: str = "") -> Counted:
    return Counted(Delta(1.0, [], [], [CounterDelta("shed", (label,), times)], [], []))


async def test_counts_that_are_lost_are_told_with_the_next_that_are_not(
    monkeypatch: pytest.MonkeyPatch,
    events: list[str],
) -> None:
    monkeypatch.setattr(channel, "_MAX_WAITING", 1000)
    ours, theirs = socket.socketpair()
    worker, supervisor = await Channel.over(ours), await Channel.over(theirs)
    sent = 0
    while not events:  # nobody reads: the socket is full, then what may wait
        sent += 1
        worker.send(counted(sent, "x" * 100_000))
    worker.send(Ready())  # any other message goes through
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


async def test_spans_without_room_leave_room_for_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "_MAX_BEFORE_SPANS", 1000)
    ours, theirs = socket.socketpair()
    worker, supervisor = await Channel.over(ours), await Channel.over(theirs)
    traced = Traced([Span("1" * 32, "2" * 16, "", "x" * 100_000, SpanKind.SERVER, 1, 2, {})])
    sent = 0
    while worker.send(traced):  # nobody reads: the socket is full, then what may wait
        sent += 1
    assert worker.send(counted(1))
    assert [await supervisor.receive() for _ in range(sent)] == [traced] * sent
    assert await supervisor.receive() == counted(1)
    await worker.close()
    await supervisor.close()


async def test_a_message_that_was_waited_for_in_vain_is_received_later() -> None:
    """Also if its length was there already."""
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
