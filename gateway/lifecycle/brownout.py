"""Brownouts: temporary refusals of a version, which warn its remaining clients before its end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Protocol

from gateway.base.context import RequestContext
from gateway.base.errors import Fault, FaultCode
from gateway.base.overrides import VersionKey

# The seconds of Retry-After for a refusal without an end, which an operator may still lift.
_LATER = 3600
# The maximum number of adjacent windows that are joined to compute Retry-After.
_AHEAD = 16


class Schedule(Protocol):
    """The recurring times at which a window opens; its results depend on its argument alone."""

    def around(self, now: float) -> tuple[float, float]:
        """Return the last time at or before `now` and the first time after it.

        Both are in seconds since 1970. Where there is no such time, the first is minus infinity and
        the second is infinity.
        """
        ...


@dataclass(frozen=True, slots=True)
class Growth:
    """A number that is constant, or grows linearly between two dates.

    Attributes:
        first: The number at the first date.
        last: The number at the second date; at least `first`.
    """

    first: float
    last: float

    def at(self, moment: float, begins: float, ends: float) -> float:
        """Return the number at a moment between the dates `begins` and `ends`."""
        if self.first == self.last:
            return self.first
        return self.first + (self.last - self.first) * (moment - begins) / (ends - begins)


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a brownout: a time or recurring times in which requests are refused.

    Attributes:
        begins: The time before which the window is closed, in seconds since 1970.
        ends: The time from which on the window is closed, in seconds since 1970.
        schedule: The times at which the window opens; None opens it from `begins` to `ends`.
        seconds: The seconds that the window stays open each time.
        percent: The percentage of requests that are refused while the window is open.
    """

    begins: float = -inf
    ends: float = inf
    schedule: Schedule | None = None
    seconds: Growth = Growth(inf, inf)
    percent: Growth = Growth(100, 100)

    def closes(self, now: float) -> float | None:
        """Return the time at which the window closes, or None if it is not open now."""
        if not self.begins <= now < self.ends:
            return None
        if self.schedule is None:
            return self.ends
        opened, _ = self.schedule.around(now)
        if now - opened >= self.seconds.last:  # the fast path: no opening lasts longer
            return None
        length = self.seconds.at(max(opened, self.begins), self.begins, self.ends)
        closes = min(opened + length, self.ends)
        return closes if now < closes else None

    def share(self, now: float) -> float:
        """Return the share of requests that the window refuses while it is open, from 0 to 1."""
        return self.percent.at(now, self.begins, self.ends) / 100


@dataclass(frozen=True, slots=True)
class Brownout:
    """The brownouts of one version.

    Attributes:
        key: The API and the label of the version.
        windows: The windows in which requests are refused.
        status: The HTTP status of the refusals: 503 with Retry-After, or 410.
        exempt: The time until which each client is exempt, in seconds since 1970, by client;
            infinite for a permanent exemption.
    """

    key: VersionKey
    windows: tuple[Window, ...]
    status: int = 503
    exempt: Mapping[str, float] = field(default_factory=dict)

    def closes(self, context: RequestContext) -> float | None:
        """Return the time of the next attempt for a refused request, or None if it is not refused.

        The time is in seconds since 1970, and infinite where the refusal has no end.
        """
        now = context.now
        latest = -inf
        for window in self.windows:
            closes = window.closes(now)
            if closes is None:
                continue
            share = window.share(now)
            if share >= 1:
                latest = max(latest, self._after(closes))
            elif context.brownout_draw < share:
                # The next request may be answered at once, so it need not wait for the end of the
                # window.
                latest = max(latest, now + 1)
        return None if latest == -inf or self.spares(context) else latest

    def _after(self, closes: float) -> float:
        """Return the time of the next answer: when the last of the adjacent windows closes."""
        found = closes
        for _ in range(_AHEAD):
            ends = [window.closes(found) for window in self.windows if window.share(found) >= 1]
            later = max((end for end in ends if end is not None), default=found)
            if later == found:
                break
            found = later
        return found

    def share(self, now: float) -> float:
        """Return the largest share of requests that any open window refuses, from 0 to 1."""
        open_now = (window for window in self.windows if window.closes(now) is not None)
        return max((window.share(now) for window in open_now), default=0.0)

    def spares(self, context: RequestContext) -> bool:
        """Return whether the client is exempt from the brownout or the brownout is paused."""
        if self.key in context.overrides.paused:
            return True
        return context.now < self.exempt.get(context.client, -inf)

    def refusal(
        self,
        closes: float,
        now: float,
        offered: tuple[str, ...],
        successor: dict[str, object] | None,
    ) -> Fault:
        """Return the fault for a request that a brownout refuses.

        Args:
            closes: The time of the next attempt, which `closes` returned.
            now: The time, in seconds since 1970.
            offered: The labels of the versions that have not ended.
            successor: The members of the problem detail about the version to use instead; None
                where there is no successor.
        """
        _, label = self.key
        instead = "a later version" if successor is None else f"version {successor['version']}"
        # Rounded up to whole seconds, so that a client that waits as long is not refused again.
        seconds = ceil(closes - now) if closes < inf else _LATER
        return Fault(
            FaultCode.VERSION_BROWNOUT,
            f"Version {label} is being withdrawn and refused for a while; use {instead}.",
            supported=offered,
            fields=((b"Retry-After", b"%d" % seconds),) if self.status == 503 else (),
            status_override=self.status,
            successor=successor,
        )
