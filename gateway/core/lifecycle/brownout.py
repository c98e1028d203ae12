"""Brownouts: a version is refused for a while, so that who still uses it notices in good time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Protocol

from gateway.core.context import RequestContext
from gateway.core.errors import Fault, FaultCode
from gateway.core.overrides import VersionKey

# When to come back to what is refused without an end, in seconds: operators change their minds.
_LATER = 3600
# So many windows that follow upon each other are looked at, to say when to come back.
_AHEAD = 16


class Schedule(Protocol):
    """When something recurs. Pure: what it returns depends on its argument alone."""

    def around(self, now: float) -> tuple[float, float]:
        """Return the last time at or before `now` and the first one after it.

        In seconds since 1970; infinitely long ago, or ahead, where there is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Growth:
    """A number that stays, or that grows evenly while time passes from one date to another.

    Attributes:
        first: to begin with.
        last: in the end; no less.
    """

    first: float
    last: float

    def at(self, moment: float, begins: float, ends: float) -> float:
        """Return the number at a moment between two others."""
        if self.first == self.last:
            return self.first
        return self.first + (self.last - self.first) * (moment - begins) / (ends - begins)


@dataclass(frozen=True, slots=True)
class Window:
    """When requests are refused, and how many of them; times are in seconds since 1970.

    Attributes:
        begins: not before.
        ends: not from then on.
        schedule: when it opens; None says that it is open from the beginning to the end.
        seconds: how long it is open each time.
        percent: of the requests while it is open.
    """

    begins: float = -inf
    ends: float = inf
    schedule: Schedule | None = None
    seconds: Growth = Growth(inf, inf)
    percent: Growth = Growth(100, 100)

    def closes(self, now: float) -> float | None:
        """Return when the window closes that is open now; None where none is."""
        if not self.begins <= now < self.ends:
            return None
        if self.schedule is None:
            return self.ends
        opened, _ = self.schedule.around(now)
        if now - opened >= self.seconds.last:  # most of the time, and it cannot be longer
            return None
        length = self.seconds.at(max(opened, self.begins), self.begins, self.ends)
        closes = min(opened + length, self.ends)
        return closes if now < closes else None

    def share(self, now: float) -> float:
        """Return the share of requests that it refuses while it is open, from 0 to 1."""
        return self.percent.at(now, self.begins, self.ends) / 100


@dataclass(frozen=True, slots=True)
class Brownout:
    """The brownouts of one version.

    Attributes:
        key: the version, by the name of its API and its label.
        windows: when, and how much of it.
        status: of the refusals: 503 says when to come back, 410 that it will end.
        exempt: by client, until when it is spared; infinite for good.
    """

    key: VersionKey
    windows: tuple[Window, ...]
    status: int = 503
    exempt: Mapping[str, float] = field(default_factory=dict)

    def closes(self, context: RequestContext) -> float | None:
        """Return when to come back if a request is refused, infinite for never, else None."""
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
                # The next request may fare better; when the window closes is of no use to it.
                latest = max(latest, now + 1)
        return None if latest == -inf or self.spares(context) else latest

    def _after(self, closes: float) -> float:
        """Return when a request is answered again, after the windows that follow upon a moment."""
        found = closes
        for _ in range(_AHEAD):
            ends = [window.closes(found) for window in self.windows if window.share(found) >= 1]
            later = max((end for end in ends if end is not None), default=found)
            if later == found:
                break
            found = later
        return found

    def share(self, now: float) -> float:
        """Return the largest share of requests that an open window refuses, from 0 to 1."""
        open_now = (window for window in self.windows if window.closes(now) is not None)
        return max((window.share(now) for window in open_now), default=0.0)

    def spares(self, context: RequestContext) -> bool:
        """Whether it does not concern who asks, or is paused."""
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
        """Return what is said to a request that is refused.

        Args:
            closes: what `closes` returned.
            now: the time, in seconds since 1970.
            offered: the labels of the versions that are not over.
            successor: what to use instead, if anything is known of it.
        """
        _, label = self.key
        instead = "a later version" if successor is None else f"version {successor['version']}"
        # Rounded up, so that who comes back by the second does not come too early.
        seconds = ceil(closes - now) if closes < inf else _LATER
        return Fault(
            FaultCode.VERSION_BROWNOUT,
            f"Version {label} is being withdrawn and refused for a while; use {instead}.",
            supported=offered,
            fields=((b"Retry-After", b"%d" % seconds),) if self.status == 503 else (),
            status_override=self.status,
            successor=successor,
        )
