"""FleetState: the state of a gateway that shares it with others in PostgreSQL.

Once a second, a beat reports that this replica is there, hands in what it counted, and reads the
overrides; a notification brings the next beat forward. No request waits for any of it: what
cannot be handed in stays in the Outbox, and the overrides that were heard last stay in force.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from gateway.base.overrides import Overrides, VersionKey
from gateway.observe import log
from gateway.observe.failing_service import FailingService
from gateway.rollout.gates import GateResult
from gateway.store.active_overrides import ActiveOverrides, Apply, overrides_of
from gateway.store.cutover_controller import CurrentCutover, CutoverController
from gateway.store.fleet.beat import Membership, Report, beat, begin_counting, leave
from gateway.store.fleet.database.postgres_connection import PostgresConnection
from gateway.store.fleet.fleet_reading import FleetReader, read_replica_views
from gateway.store.fleet.judge import RESETS, Judge, mark_gone, read_replicas, shadow_resets
from gateway.store.fleet.kept.last_overrides import LastOverrides
from gateway.store.fleet.kept.last_start import LastStart
from gateway.store.fleet.lease import NO_LEASE, is_free
from gateway.store.fleet.merging import delete_shadow
from gateway.store.fleet.outbox import Outbox
from gateway.store.fleet.postgres import StatementsForgottenError
from gateway.store.fleet.roster import DEPUTY, elsewhere, lost
from gateway.store.fleet.transaction_ledger import (
    FleetDocuments,
    HeardLedger,
    TransactionLedger,
    revision_of,
)
from gateway.store.ledger import Ledger, Order, SharedDocuments
from gateway.store.state_access import (
    FleetView,
    SetAhead,
    StateView,
    Turn,
    UnknownReplicaError,
)
from gateway.usage.delta import Delta
from gateway.usage.state_changes import StateError, StateUnreachableError

# Seconds between two beats, two attempts to listen, and two judgements while batches wait.
_INTERVAL, _LISTEN_AGAIN, _CATCH_UP = 1.0, 5.0, 0.05
# The documents that a start without the database goes by.
_KEPT = ("overrides", "cutovers", "revision")

Act = Callable[[ActiveOverrides, CutoverController], Awaitable[None]]


class FleetState(FleetReader):
    """A StateAccess of one replica, with the attributes of one; `open` makes it."""

    def __init__(self, membership: Membership) -> None:
        super().__init__(membership)
        self.documents: SharedDocuments = FleetDocuments(self._database)
        self._last = LastOverrides(membership.last, self._database.name)
        self._start = uuid4().hex
        self._last_start = LastStart(membership.last_start, self._database.name, self._start)
        self._outbox = Outbox(self._clock.now)
        rules = membership.rules, membership.rules_hash
        self._judge = Judge(self._start, *rules, self._clock)
        self._lease = NO_LEASE
        self._lock, self._notified = asyncio.Lock(), asyncio.Event()
        self._documents: Mapping[str, object] = {}
        self._applied, self._changed, self._prepared = -1, 0.0, False
        self._apply: Apply | None = None
        self.admin, self.unheard = "", self._last_start.unheard
        self.failing: Callable[[], list[FailingService]] = list
        self.tasks: Mapping[str, Callable[[], Coroutine[None, None, None]]] = {
            "state": self._beat_on,
            "overrides": self._listen,
            "cutovers": self._judge_on,
        }

    @classmethod
    async def open(cls, membership: Membership) -> "FleetState":
        """Join a fleet.

        While its database cannot be reached, the overrides that were heard last are in force.

        Raises:
            StateError: the database cannot be used, or not be reached and nothing was heard yet.
        """
        state = cls(membership)
        try:
            try:
                await state._join()
            except StatementsForgottenError:
                await state._join()
        except StateUnreachableError as error:
            known = state._last.read()
            if known is None:
                await state._release()
                raise StateError(
                    f"{error}; no overrides were kept from before, so that a start without it could"
                    " undo what was set"
                ) from None
            state._contact.missed(error)
            state._documents = known
            state._applied = revision_of(known)
            await state._note()
        except StateError:
            await state._release()
            raise
        return state

    @property
    def judges(self) -> bool:
        """Whether this replica acts for all of them now."""
        return self.stale_since is None and not self.turn.rank

    @property
    def turn(self) -> Turn:
        """When it acts while the database is away; as the first also if it never was reached."""
        if self._lease.start == self._start or not self._contact.heard:
            return Turn(0, self._lease.token)
        return Turn(1 if self._documents.get(DEPUTY) == self._start else 2, self._lease.token)

    @property
    def in_force(self) -> Overrides:
        """The overrides in force."""
        return overrides_of(self._documents)

    @property
    def stale_since(self) -> float | None:
        """Since when the database has not been reached; None if it has."""
        return self._contact.stale_since

    @property
    def now(self) -> float:
        """The time of the database, which goes on while that is away."""
        return self._clock.now()

    @property
    def stale_reason(self) -> str:
        """Why the database was not reached at last; empty if it is."""
        return self._contact.stale_reason

    def follow(self, apply: Apply, set_ahead: SetAhead) -> None:
        """Set the functions that put overrides and the time of the database in force."""
        self._apply = apply
        self._clock.follow(set_ahead)

    def absorb(self, delta: Delta) -> None:
        """Add what a process of this gateway has counted."""
        self.totals.absorb(delta)
        self._outbox.absorb(delta)

    async def close(self) -> None:
        """Hand in what is left, and leave."""
        try:
            if self._prepared:
                async with self._lock:
                    for _ in range(2):  # what was handed in and not confirmed, then the rest
                        await beat(self._database, self._report(), self._outbox, self._clock)
                    await leave(self._database, self._start)
                    self._contact.behind = False
        except StateError as error:
            log.event("state_unwritten", "error", reason=str(error))
            self._contact.behind = True
        finally:
            await self._note(last=True)
            await self._release()

    async def view(
        self, key: VersionKey | None = None, replica: str | None = None, *, clients: bool = True
    ) -> StateView:
        """Return the sums of the fleet, or what this replica has counted since it started."""
        if replica == self.replica:
            return self._own_view()
        if replica is not None:
            raise UnknownReplicaError(elsewhere(replica, await self.fleet(), self.replica))
        return await self._sums(key, clients=clients)

    async def cutover(self, key: VersionKey) -> CurrentCutover:
        """Return how a cutover stands, by the last beat."""
        return self._recalled().current(key)

    def gate_results(self, key: VersionKey) -> tuple[GateResult, ...]:
        """Return the results of the gates of a cutover, by the last beat."""
        return self._recalled().results(key)

    async def pause(self, key: VersionKey, order: Order) -> None:
        """Pause the brownouts of a version."""
        await self._change(lambda overrides, _: overrides.pause(key, order))

    async def resume(self, key: VersionKey, order: Order) -> None:
        """End the pause of brownouts."""
        await self._change(lambda overrides, _: overrides.resume(key, order))

    async def set_percent(self, key: VersionKey, percent: float | None, order: Order) -> None:
        """Set the percentage of a cutover, or with None fix it where it stands."""
        await self._change(lambda _, cutovers: cutovers.set(key, percent, order))

    async def clear_percent(self, key: VersionKey, order: Order) -> None:
        """Return to the percentage of the rules."""
        await self._change(lambda _, cutovers: cutovers.clear(key, order))

    async def reset_shadow(self, key: VersionKey, order: Order) -> None:
        """Delete what the shadow of a version has counted; what is under way may follow."""
        async with self._ledger() as (ledger, connection):
            await delete_shadow(connection, key)
            resets = shadow_resets(ledger.documents)
            resets[key] = resets.get(key, 0) + 1
            await ledger.keep(RESETS, [[*other, times] for other, times in resets.items()])
            ledger.record(order, "shadow reset", key, "", "")
        log.event("shadow_reset", api=key[0], version=key[1])

    async def fleet(self) -> FleetView:
        """Return the replicas."""
        revision = revision_of(self._documents)
        async with self._contact.reading():
            return await read_replica_views(self._database, revision, self._changed)

    async def forget(self, replica: str, order: Order) -> None:
        """Forget a replica that is lost."""
        async with self._ledger() as (ledger, connection):
            for row in lost(replica, await read_replicas(connection), self._clock.now()):
                await mark_gone(connection, row.start, self._clock.now())
            ledger.record(order, "replica forgotten", (replica, ""), "lost", "forgotten")

    async def record(self, order: Order, what: str, about: str) -> None:
        """Add an act to the audit log that changes nothing in the state."""
        async with self._ledger() as (ledger, _):
            ledger.record(order, what, (about, ""), "", "")

    async def _join(self) -> None:
        await self._database.prepare()
        await begin_counting(self._database)
        self._prepared = True
        await self._beat()

    async def _beat_on(self) -> None:
        while True:
            async with self._lock:
                try:
                    await (self._beat() if self._prepared else self._join())
                except StateError as error:
                    self._contact.missed(error)
                except TimeoutError:
                    reason = "a worker has not acknowledged the overrides"
                    log.event("cutover_late", "error", reason=reason)
            self._clock.tell()
            await self._note()
            with suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL):
                    await self._notified.wait()
            self._notified.clear()

    async def _listen(self) -> None:
        while True:
            # Without notifications, the next beat has what they would announce.
            with suppress(StateError):
                await self._database.listen(self._notified.set)
            await asyncio.sleep(_LISTEN_AGAIN)

    async def _judge_on(self) -> None:
        while True:
            may = not self.turn.rank or is_free(self._lease, self._clock.now())
            if may and self._prepared and self.stale_since is None:
                try:
                    await self._judge.judge(self._database)
                except StateError as error:
                    log.event("not_judged", "warning", reason=str(error))
            await asyncio.sleep(_CATCH_UP if self._judge.behind else _INTERVAL)

    async def _beat(self) -> None:
        heard = await beat(self._database, self._report(), self._outbox, self._clock)
        self._contact.reached(heard.now)
        self._last_start.take_place()
        self._lease = heard.lease
        await self._adopt(heard.documents)

    async def _note(self, *, last: bool = False) -> None:
        contact = self._contact
        await self._last.keep()
        await self._last_start.note(contact.heard, cut_off=contact.behind, last=last)

    async def _adopt(self, found: Mapping[str, object]) -> None:
        """Put overrides in force, if they differ; a backup may have others of the same number."""
        former, before, revision = self.in_force, self._documents, revision_of(found)
        self._documents = found
        if revision != revision_of(before):
            self._changed = self._clock.now()
        if revision == self._applied and self.in_force == former:
            return
        if self._apply is not None:
            await self._apply(self.in_force)
        if self._applied >= 0:
            log.event("overrides_applied", revision=revision)
        self._applied = revision
        kept = {name: found[name] for name in _KEPT if name in found}
        await self._last.keep(kept)

    async def _release(self) -> None:
        self._last_start.close()
        await self._database.close()

    def _report(self) -> Report:
        rules, revision = self._membership.rules_hash(), max(self._applied, 0)
        now = self.admin, revision, self._contact.heard, self._last_start.before
        refused, failing = self._membership.refused(), self.failing()
        return Report(self._start, self.replica, rules, *now, refused, failing)

    def _recalled(self) -> CutoverController:
        ledger = HeardLedger(self._documents)
        controller = self._controller(ledger, ActiveOverrides(ledger))
        controller.recall(self._documents.get("evidence"))
        return controller

    def _controller(self, ledger: Ledger, overrides: ActiveOverrides) -> CutoverController:
        return CutoverController(ledger, overrides, self._membership.rules, self._clock.now)

    async def _change(self, act: Act) -> None:
        async with self._ledger() as (ledger, _):
            overrides = ActiveOverrides(ledger)
            await act(overrides, self._controller(ledger, overrides))

    @asynccontextmanager
    async def _ledger(self) -> AsyncIterator[tuple[TransactionLedger, PostgresConnection]]:
        """Yield a ledger; write what was changed, and put it in force here."""
        async with self._lock:
            try:
                async with self._database.transaction() as transaction:
                    ledger = await TransactionLedger.open(transaction)
                    yield ledger, transaction.connection
                    await ledger.write()
            except StateUnreachableError as error:
                self._contact.missed(error)
                raise
            ledger.log()
            await self._adopt(ledger.documents)
