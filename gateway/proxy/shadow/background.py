"""Asking services in the background: what is asked for nobody gives way to all that is.

Such a request takes only room that is left over, waits for none, is never failed over, and says
nothing of how well a target is: with it, a target is neither ejected nor taken back.
"""

import os
import time
from collections.abc import Callable
from functools import partial

from gateway.core.errors import Fault, FaultCode, FaultError
from gateway.core.service import Service, Target
from gateway.proxy.upstream.pool import ConnectError, Pool, ServicePool
from gateway.proxy.upstream.streamed_response import StreamedResponse
from gateway.proxy.upstream.upstream import UpstreamRequest

# What of a process's time may be spent before the background gives way, looked at that often.
_MOST = 0.8
_INTERVAL = 0.1


class ShedError(Exception):
    """A request in the background gave way; the text names what to."""


class Load:
    """Tells whether this process has time left over.

    Time is used while the thread computes, and while it could but has to wait for a processor,
    which others may keep as busy as we do.

    Args:
        used: returns how much was used so far, in seconds.
    """

    def __init__(self, used: Callable[[], float]) -> None:
        self._measure = used
        self._at = time.monotonic()
        self._used = used()
        self._high = False

    @property
    def high(self) -> bool:
        """Whether the requests that clients wait for need all of it."""
        now = time.monotonic()
        passed = now - self._at
        if passed >= _INTERVAL:
            used = self._measure()
            self._high = used - self._used > _MOST * passed
            self._at, self._used = now, used
        return self._high


def time_used() -> Callable[[], float]:
    """Return what measures the time that this thread has used, in seconds."""
    try:
        # Linux tells nanoseconds on a processor and in line for one (scheduler/sched-stats.rst); it
        # is held open as long as the process lives.
        held = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return time.thread_time

    def used() -> float:
        on, waiting, *_ = os.pread(held, 128, 0).split()
        return (int(on) + int(waiting)) / 1e9

    return used


async def ask(pool: Pool, service: Service, request: UpstreamRequest) -> StreamedResponse:
    """Return the response of a service as soon as its head is there.

    Raises:
        ShedError: the service has no room left over.
        FaultError: there is no response.
    """
    members = pool.members(service)
    if members.limiter.half_full:
        raise ShedError("capacity")
    now = time.monotonic()
    target = members.balancer.choose(now)
    if target is None:
        fault = Fault(FaultCode.UPSTREAM_UNAVAILABLE, "No backend is well enough to be asked.")
        raise FaultError(fault, service.name)
    members.limiter.entered()
    members.balancer.began(target)
    over = partial(_over, members, target)
    try:
        response = await pool.ask(target, service.timeouts, request)
    except BaseException as error:
        over(None)
        if isinstance(error, ConnectError):
            raise error.failure from None
        raise
    response.ended = over
    return response


def _over(members: ServicePool, target: Target, _: StreamedResponse | None) -> None:
    members.balancer.ended(target, time.monotonic(), failed=None)
    members.limiter.leave()
