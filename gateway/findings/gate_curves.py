"""Gate curves: the latest comparisons by the gates of cutovers, for charts."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gateway.base.overrides import VersionKey
from gateway.rollout.cutover import percent_in_force
from gateway.rollout.gates import GateLimits
from gateway.routing.snapshot import Snapshot
from gateway.store.state import State

# A curve has at most POINTS points and covers _WINDOWS times the window of the gates. Points are at
# least _INTERVAL seconds apart.
POINTS = 60
_WINDOWS = 2
_INTERVAL = 1.0

GateName = tuple[str, str]


class GatePoint(NamedTuple):
    """The comparison by a gate at one time, in monotonic seconds."""

    at: float
    new: float | None
    old: float | None


def curve_seconds(gates: GateLimits) -> float:
    """Return the time in seconds that a curve covers."""
    return max(gates.window * _WINDOWS, POINTS * _INTERVAL)


class GateCurves:
    """The curves of all gates since this process started.

    At 0 percent, the new route has no requests. The curves of a cutover then stay unchanged, to
    show why the cutover was rolled back. They are cleared when its percentage rises again.
    """

    def __init__(self) -> None:
        self._curves: dict[VersionKey, dict[GateName, deque[GatePoint]]] = {}
        self._still: set[VersionKey] = set()

    def of(self, key: VersionKey) -> Mapping[GateName, Sequence[GatePoint]]:
        return self._curves.get(key, {})

    async def run(self, state: State, rules: Callable[[], Snapshot]) -> None:
        while True:
            await self.look(state, rules(), time.monotonic())
            await asyncio.sleep(_INTERVAL)

    async def look(self, state: State, rules: Snapshot, now: float) -> None:
        for key in self._curves.keys() - rules.cutovers.keys():
            del self._curves[key]
        still = {
            key
            for key, cutover in rules.cutovers.items()
            if percent_in_force(cutover, state.in_force) == 0
        }
        for key in self._still - still:
            self._curves.pop(key, None)
        self._still = still
        for key, cutover in rules.cutovers.items():
            gates = None if key in still else cutover.gates
            if gates is None or not self._is_due(key, gates, now):
                continue
            curves = self._curves.setdefault(key, {})
            for result in state.cutover(key).results:
                name = result.gate, result.measure
                if name in curves or result.new_count or result.old_count:
                    curve = curves.setdefault(name, deque(maxlen=POINTS))
                    curve.append(GatePoint(now, result.new, result.old))
            await asyncio.sleep(0)  # let the event loop serve requests

    def _is_due(self, key: VersionKey, gates: GateLimits, now: float) -> bool:
        apart = curve_seconds(gates) / POINTS
        latest = max((curve[-1].at for curve in self._curves.get(key, {}).values()), default=None)
        return latest is None or now - latest >= apart
