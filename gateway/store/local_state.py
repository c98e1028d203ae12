"""LocalState: the state of a gateway that keeps it alone, in memory or in a file."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping

from gateway import __version__
from gateway.base.overrides import Overrides, VersionKey
from gateway.base.steady_clock import WAS_SET, passed
from gateway.observe import log
from gateway.observe.failing_service import FailingService
from gateway.rollout.gates import GateResult
from gateway.routing.snapshot import Snapshot
from gateway.store.active_overrides import ActiveOverrides, Apply
from gateway.store.cutover_controller import CurrentCutover, CutoverController
from gateway.store.ledger import AuditEntry, DraftLedger, Order, SharedDocuments
from gateway.store.state_access import (
    LAG_SECONDS,
    FleetView,
    ReplicaView,
    SetAhead,
    StateView,
    Turn,
    UnknownReplicaError,
    VersionReading,
)
from gateway.store.state_writer import StateWriter
from gateway.usage.delta import Delta
from gateway.usage.history import HistoryQuery, HistoryView, whole_history

# Seconds between two judgements.
_INTERVAL = 1.0

_Act = Callable[[ActiveOverrides, CutoverController], Awaitable[None]]


class LocalState:
    """A StateAccess over a StateWriter.

    What an operator changes is stored before it is in force, and refused where that fails. What the
    gates decide is in force all the same: a rollback waits for no disk.

    Args:
        writer: holds the state.
        replica: the name of this gateway.
        rules: returns the snapshot in force.
        rules_hash: returns the hash of its text.
        refused: returns why the rules on disk are not in force; empty if they are.

    Attributes:
        replica: the name of this gateway.
        totals: all that was counted.
        admin: the address of its admin port, once it has one.
        failing: returns the services with targets that fail.
        writer: holds the state.
        documents: what else is kept.
        unheard: the file of a worker whose counts were not taken.
        overrides: those in force.
        cutovers: decides them.
        tasks: what has to run, by name.
    """

    def __init__(
        self,
        writer: StateWriter,
        replica: str,
        rules: Callable[[], Snapshot],
        rules_hash: Callable[[], str],
        refused: Callable[[], str] = str,
    ) -> None:
        self.writer = writer
        self.totals = writer.totals
        self.documents: SharedDocuments = writer
        self.unheard = writer.unheard
        self.overrides = ActiveOverrides(writer)
        self.cutovers = CutoverController(writer, self.overrides, rules)
        self._lock = asyncio.Lock()
        self._rules = rules
        self._rules_hash, self._refused = rules_hash, refused
        self._started = time.time()
        self._ahead = self._started - passed()
        self.replica = replica
        self.admin = ""
        self.failing: Callable[[], list[FailingService]] = list
        self.tasks: Mapping[str, Callable[[], Coroutine[None, None, None]]] = {
            "state": writer.run,
            "cutovers": self._judge_on,
        }

    @property
    def judges(self) -> bool:
        """Whether this gateway acts for all replicas: it is alone."""
        return True

    @property
    def turn(self) -> Turn:
        """The first: there is no other."""
        return Turn(0, 0)

    @property
    def in_force(self) -> Overrides:
        """The overrides in force."""
        return self.overrides.in_force

    @property
    def stale_since(self) -> float | None:
        """Since when the state could not be written; None if it is."""
        return self.writer.failing_since

    @property
    def now(self) -> float:
        """The time: that of this machine."""
        return time.time()

    @property
    def stale_reason(self) -> str:
        """Why the state could not be written at last; empty if it is."""
        return self.writer.failing_reason

    def follow(self, apply: Apply, set_ahead: SetAhead) -> None:
        """Set the function that applies overrides; the clock of this machine is right."""
        self.overrides.follow(apply)

    def absorb(self, delta: Delta) -> None:
        """Add what a process of this gateway has counted."""
        self.totals.absorb(delta)

    async def close(self) -> None:
        """Write what is left, and release the store."""
        await self.writer.close()

    async def view(
        self, key: VersionKey | None = None, replica: str | None = None, *, clients: bool = True
    ) -> StateView:
        """Return all that was counted."""
        if replica not in (None, self.replica):
            raise UnknownReplicaError(
                f"no replica is called '{replica}'; this gateway, {self.replica}, keeps its state"
                " alone"
            )
        self._look_at_clock()
        now = time.time()
        return StateView(self.totals, now, now - LAG_SECONDS, None, ())

    async def version(self, key: VersionKey) -> VersionReading:
        """Return what is known of one version."""
        view = await self.view(key)
        days, minutes = [await self.history(query) for query in whole_history(key)]
        latest = (each for each in reversed(self.writer.audit) if (each.api, each.version) == key)
        series = days.series.get(key, {}), minutes.series.get(key, {})
        return VersionReading(view, *series, next(latest, None))

    async def history(self, query: HistoryQuery) -> HistoryView:
        """Return the intervals of the history that are asked for."""
        return await self.writer.history(query)

    async def cutover(self, key: VersionKey) -> CurrentCutover:
        """Return how a cutover stands."""
        async with self._lock:
            return self.cutovers.current(key)

    def gate_results(self, key: VersionKey) -> tuple[GateResult, ...]:
        """Return the results of the gates now, or those for which they rolled the cutover back."""
        return self.cutovers.results(key)

    async def pause(self, key: VersionKey, order: Order) -> None:
        """Pause the brownouts of a version."""
        await self._change(lambda overrides, _: overrides.pause(key, order))

    async def resume(self, key: VersionKey, order: Order) -> None:
        """End the pause of brownouts."""
        await self._change(lambda overrides, _: overrides.resume(key, order))

    async def set_percent(self, key: VersionKey, percent: float | None, order: Order) -> None:
        """Set the percentage of a cutover, or with None fix it where it stands."""
        await self._change(lambda _, cutovers: cutovers.set(key, percent, order), key)

    async def clear_percent(self, key: VersionKey, order: Order) -> None:
        """Return to the percentage of the rules."""
        await self._change(lambda _, cutovers: cutovers.clear(key, order), key)

    async def reset_shadow(self, key: VersionKey, order: Order) -> None:
        """Delete what the shadow of a version has counted."""
        async with self._lock:
            await self._record(order, "shadow reset", key)
            await self.overrides.apply_again()
            self.totals.reset_shadow(key)
            self.cutovers.reset_shadow(key)
            await self.writer.write()
        log.event("shadow_reset", api=key[0], version=key[1])

    async def audit(self) -> list[AuditEntry]:
        """Return the latest changes, the latest last."""
        return list(self.writer.audit)

    async def fleet(self) -> FleetView:
        """Return this gateway alone."""
        now = time.time()
        itself = ReplicaView(
            self.replica,
            "heard",
            judges=True,
            version=__version__,
            rules=self._rules_hash(),
            admin=self.admin,
            started=self._started,
            heard=now,
            lag=0.0,
            behind=0,
            refused=self._refused(),
            failing=self.failing(),
        )
        return FleetView([itself], [])

    async def record(self, order: Order, what: str, about: str) -> None:
        """Add an act to the audit log that changes nothing in the state."""
        await self._record(order, what, (about, ""))

    async def forget(self, replica: str, order: Order) -> None:
        """Refuse: there is no other replica."""
        raise UnknownReplicaError(
            f"no replica is called '{replica}'; this gateway, {self.replica}, is alone"
        )

    async def _judge_on(self) -> None:
        while True:
            self._look_at_clock()
            try:
                async with self._lock:
                    await self.cutovers.decide(time.monotonic())
            except TimeoutError:
                reason = "a worker has not acknowledged the overrides"
                log.event("cutover_late", "error", reason=reason)
            await asyncio.sleep(_INTERVAL)

    def _look_at_clock(self) -> None:
        """Begin to count anew where the clock was set: what was counted has times of the former."""
        now = time.time()
        former, self._ahead = self._ahead, now - passed()
        if abs(self._ahead - former) > WAS_SET:
            self.totals.since = now
            log.event("state_went_back", "error", reason="the clock of this machine was set")

    async def _change(self, act: _Act, key: VersionKey | None = None) -> None:
        """Store what an act changes, then put it in force, with the state of that cutover."""
        async with self._lock:
            draft = self._draft()
            overrides = ActiveOverrides(draft)
            await act(overrides, CutoverController(draft, overrides, self._rules))
            await self.writer.commit(draft)
            draft.log()
            try:
                await self.overrides.adopt()
            finally:
                if key is not None:
                    self.cutovers.adopt(key)

    async def _record(self, order: Order, what: str, about: VersionKey) -> None:
        draft = self._draft()
        draft.record(order, what, about, "", "")
        await self.writer.commit(draft)

    def _draft(self) -> DraftLedger:
        return DraftLedger(self.writer.documents, time.time())
