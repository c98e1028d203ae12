"""What goes through between two processes, and what is told of what does not."""

import socket

import pytest

from gateway.process import channel
from gateway.process.channel import Channel, Counted, Ready
from gateway.telemetry import log
from gateway.telemetry.delta import CounterDelta, Delta


def counted(times: int, label: str = "") -> Counted:
    return Counted(Delta(1.0, [], [], [CounterDelta("shed", (label,), times)], [], []))


async def test_counts_that_are_lost_are_told_with_the_next_that_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []
    monkeypatch.setattr(log, "event", lambda name, *_, **__: events.append(name))
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
