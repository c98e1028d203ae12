"""The interface of the state of one gateway or of a fleet."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gateway.base.extras import install
from gateway.base.overrides import NO_OVERRIDES, Overrides, VersionKey
from gateway.observe import log
from gateway.observe.failing_targets import FailingService
from gateway.rollout.cutover import VersionCutover
from gateway.rollout.cutovers import ClockTime, CurrentCutover, Cutovers, PercentCommand
from gateway.rollout.decisions import AuditEntry, ChangeRequest, Draft, Event
from gateway.routing.snapshot import Snapshot
from gateway.store.state_location import extra_of
from gateway.usage.delta import Admitted, Delta
from gateway.usage.history import HistoryQuery, HistoryView, Interval
from gateway.usage.totals import Totals

Apply = Callable[[Overrides], Awaitable[None]]
SetAhead = Callable[[float], None]
Change = Callable[[Draft, Cutovers, ClockTime], None]
"""A function that changes a draft, given the states of the cutovers and the time."""
SILENT_SECONDS = 5.0
"""The number of seconds without a heartbeat after which a replica counts as lost."""
LAG_SECONDS = 2.0
"""The maximum number of seconds until a request is counted in the sums."""
IN_FORCE_SECONDS = 2.0
"""The maximum number of seconds until a change is in force on every replica with heartbeats."""


class StateError(Exception):
    """The store cannot be used. The message contains the store's name, the reason and a remedy."""


class StateUnreachableError(StateError):
    """The store cannot be reached now, but a retry may succeed."""


class StateUnsureError(StateUnreachableError):
    """The connection broke during a commit, so the change may or may not be stored."""


class StateBusyError(StateError):
    """Other readers used the store for too long."""


class StateLostError(StateError):
    """The state file was lost while the gateway was running, and an empty file was created."""


class UnknownReplicaError(LookupError):
    """The replica is unknown or unsuitable; the message names the suitable replicas."""


class DataGap(NamedTuple):
    """A reason why the sums may lack counts from a certain time on.

    Attributes:
        replica: the replica without heartbeats; None if the database cannot be reached.
        since: the time from which counts may be missing, in seconds since 1970.
    """

    replica: str | None
    since: float


class StateView(NamedTuple):
    """The sums at one moment.

    Attributes:
        now: the time in seconds since 1970, by the clock of the store.
        counted: the time up to which the sums are complete.
        replica: the name of the replica if the sums cover only this replica; None if they cover all
            replicas.
    """

    totals: Totals
    now: float
    counted: float
    replica: str | None
    gaps: tuple[DataGap, ...]


class VersionReading(NamedTuple):
    """All data about a version, read from one snapshot of the store.

    Attributes:
        minutes: the intervals of the history by the minute, which may lack callers.
        latest: the latest audit entry about the version; None without an entry, or if the audit log
            cannot be read.
    """

    view: StateView
    days: Mapping[int, Interval]
    minutes: Mapping[int, Interval]
    latest: AuditEntry | None


class ReplicaView(NamedTuple):
    """A replica as shown to operators. All times are in seconds since 1970.

    Attributes:
        presence: `heard` if the replica sends heartbeats, or `lost`.
        rules: the hash of the configuration in force.
        lag: the age of the last heartbeat in seconds.
        behind: the number of batches of the replica that are not yet in the sums.
        refused: why the replica's configuration on disk is not in force; empty if it is in force.
    """

    replica: str
    presence: str
    leads: bool
    version: str
    rules: str
    admin: str
    started: float
    heard: float
    lag: float
    behind: int
    refused: str = ""
    failing: Sequence[FailingService] = ()


class FleetView(NamedTuple):
    replicas: list[ReplicaView]
    warnings: list[str]


class FailoverRank(NamedTuple):
    """The order in which replicas act for the fleet while the store cannot be reached.

    Attributes:
        rank: 0 for the last leader, 1 for its deputy, 2 for all others. A replica that has not
            reached the store since its start has rank 0, since it does not know the leader.
        term: the token of the last leader; 0 without a leader.
    """

    rank: int
    term: int


class Membership(NamedTuple):
    """The name of this gateway, and functions that return its configuration.

    Attributes:
        overrides_file: the file in the local cache with the last overrides.
    """

    replica: str
    rules: Callable[[], Snapshot]
    rules_hash: Callable[[], str]
    refused: Callable[[], str] = str
    overrides_file: Path = Path()


# The maximum number of concurrent readers, which leaves connections for heartbeats and the leader.
# The second value is the maximum number of seconds that another reader waits.
_READERS = 2
_PATIENCE = 10.0


class StoreHealth:
    """The availability of the store, and the limit of concurrent readers.

    Attributes:
        heard: the time of the last confirmed heartbeat or write; 0 without one.
        behind: whether the store may lack more than the counts since the last write.
    """

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._name = name
        self._clock = clock
        self._readers = asyncio.Semaphore(_READERS)
        self._missed: Callable[[], StateError] | None = None
        self.heard = 0.0
        self.stale_since: float | None = None
        self.stale_reason = ""
        self.behind = False

    def reached(self, now: float) -> None:
        self.behind = self.stale_since is not None  # the next write has the counts of the outage
        if self.behind:
            log.event("state_written", store=self._name)
        self.stale_since, self._missed, self.stale_reason = None, None, ""
        self.heard = now

    def missed(self, error: StateError) -> float:
        """Record a failed access; return the time since which the store cannot be reached."""
        if self.stale_since is None:
            log.event("state_unwritten", "error", reason=str(error))
            self.stale_since = self.heard or self._clock()
        self.behind, self.stale_reason = True, str(error)
        self._missed = partial(StateUnreachableError, str(error))  # without a traceback
        return self.stale_since

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Wait until the number of readers is below the maximum, and count as a reader.

        Raises:
            StateBusyError: the wait took too long.
            StateUnreachableError: the last attempt could not reach the store.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._readers.acquire()
        except TimeoutError:
            raise StateBusyError(
                f"{self._name}: {_READERS} other reads have taken {_PATIENCE:g} s; try again, if"
                " possible for a single version"
            ) from None
        try:
            if self._missed is not None:
                raise self._missed()
            yield
        finally:
            self._readers.release()


class State(ABC):
    """The state of a gateway.

    A method that changes the state returns when the change is in force in this gateway.

    Args:
        clock: returns the time of the store in seconds since 1970.

    Attributes:
        failing: returns the services with failing targets in this gateway.
        add_debt: receives the requests that other replicas admit within shared rate limits.
        unheard: the file that a worker creates while its counts cannot be delivered; None without a
            state file.

    Raises:
        StateError: raised by each method if the store cannot be reached; nothing was changed.
        TimeoutError: raised by each method that changes the state if a worker does not acknowledge
            the change in time.
    """

    unheard: Path | None
    tasks: Mapping[str, Callable[[], Coroutine[None, None, None]]]

    def __init__(self, membership: Membership, store: str, clock: Callable[[], float]) -> None:
        self.membership = membership
        self.replica = membership.replica
        self.totals = Totals()
        self.admin = ""
        self.failing: Callable[[], list[FailingService]] = list
        self.add_debt: Callable[[Sequence[Admitted]], object] = list
        self.in_force = NO_OVERRIDES
        self._documents: Mapping[str, object] = {}
        self._date = clock
        self._health = StoreHealth(store, clock)
        self._apply: Apply | None = None

    @property
    @abstractmethod
    def leads(self) -> bool:
        """Whether this gateway is the leader."""

    @property
    @abstractmethod
    def failover(self) -> FailoverRank:
        """The rank of this gateway while the store cannot be reached."""

    @property
    def stale_since(self) -> float | None:
        """The time since which the store cannot be reached, in seconds since 1970, or None."""
        return self._health.stale_since

    @property
    def stale_reason(self) -> str:
        return self._health.stale_reason

    @property
    def now(self) -> float:
        """The time of the store, in seconds since 1970."""
        return self._date()

    def follow(self, apply: Apply, set_ahead: SetAhead) -> None:
        """Set the functions that pass changes to every process of this gateway.

        Args:
            apply: called with the overrides after each change.
            set_ahead: called at once and after each change, with the number of seconds by which the
                clock of the store is ahead of this machine's clock.
        """
        self._apply = apply

    def absorb(self, delta: Delta) -> None:
        self.totals.absorb(delta)

    @abstractmethod
    async def close(self) -> None:
        """Write unwritten data, and release the store."""

    @abstractmethod
    async def view(
        self, key: VersionKey | None = None, replica: str | None = None, *, clients: bool = True
    ) -> StateView:
        """Return the sums of all replicas, or of one replica.

        Args:
            clients: whether to read the many rows of clients and all counts. If false, the view has
                only the time of the last request for each version, and the violations.

        Raises:
            UnknownReplicaError: the named replica is not this gateway.
        """

    @abstractmethod
    async def version(self, key: VersionKey) -> VersionReading:
        """Return all data about a version from one snapshot."""

    @abstractmethod
    async def history(self, query: HistoryQuery) -> HistoryView:
        pass

    @abstractmethod
    def cutover(self, key: VersionKey) -> CurrentCutover:
        pass

    @abstractmethod
    async def audit(self) -> list[AuditEntry]:
        """Return the latest entries in ascending order of time."""

    @abstractmethod
    async def fleet(self) -> FleetView:
        pass

    @abstractmethod
    async def forget(self, replica: str, request: ChangeRequest) -> None:
        """Forget a lost replica.

        Raises:
            UnknownReplicaError: the replica is not lost, or there is no replica with this name.
        """

    @abstractmethod
    async def reset_shadow(self, key: VersionKey, request: ChangeRequest) -> None:
        """Delete the counts of a version's shadow."""

    @abstractmethod
    async def read_document(self, name: str) -> tuple[object, float]:
        """Return a shared document (None if it does not exist), and the time of the store."""

    @abstractmethod
    async def change_document(self, name: str, change: Callable[[object], object]) -> None:
        """Replace a shared document with the result of a function, under a lock."""

    async def pause(self, key: VersionKey, request: ChangeRequest) -> None:
        """Pause the brownouts of a version; raises ChangedMeanwhileError."""
        await self._change(lambda draft, *_: draft.pause(key, request, paused=True))

    async def resume(self, key: VersionKey, request: ChangeRequest) -> None:
        await self._change(lambda draft, *_: draft.pause(key, request, paused=False))

    async def set_aside(self, client: str, until: float | None, request: ChangeRequest) -> None:
        """Set a client aside until a time; None counts it again. Raises ValueError."""
        await self._change(lambda draft, *_: draft.set_aside(client, until, request))

    async def set_percent(
        self, key: VersionKey, percent: float | None, request: ChangeRequest
    ) -> None:
        """Set the percentage of a cutover. None fixes the current percentage.

        Gates do not change the percentage until it is cleared. Raises ChangedMeanwhileError.
        """
        await self._order(key, PercentCommand.STAY if percent is None else percent, request)

    async def promote(self, key: VersionKey, request: ChangeRequest) -> None:
        """Go to the next step, where steps and gates continue; raises ChangedMeanwhileError."""
        await self._order(key, PercentCommand.PROMOTE, request)

    async def clear_percent(self, key: VersionKey, request: ChangeRequest) -> None:
        """Return to the configured percentage; raises ChangedMeanwhileError."""
        await self._order(key, PercentCommand.CLEAR, request)

    async def record(self, request: ChangeRequest, what: str, about: str) -> None:
        """Add an entry to the audit log without a change of the state."""
        note = (about, "")
        await self._change(lambda draft, *_: draft.record(request, what, note), applies=False)

    @abstractmethod
    async def _change(
        self, change: Change, key: VersionKey | None = None, *, applies: bool = True
    ) -> None:
        """Store a change in one transaction, then put it in force.

        Args:
            key: the version of the changed cutover.
            applies: whether overrides may have changed.
        """

    async def _order(
        self, key: VersionKey, order: float | PercentCommand, request: ChangeRequest
    ) -> None:
        def change(draft: Draft, cutovers: Cutovers, at: ClockTime) -> None:
            cutovers.request(draft, self._cutovers_configured[key], order, request, at)

        await self._change(change, key)

    @property
    def _cutovers_configured(self) -> Mapping[VersionKey, VersionCutover]:
        return self.membership.rules().cutovers

    @property
    def _moment(self) -> ClockTime:
        return ClockTime(time.monotonic(), self._date())


def log_events(events: Sequence[Event]) -> None:
    for event in events:
        log.event(event.name, event.level, **event.fields)


def report_lost_overrides(reason: str) -> None:
    log.event("overrides_lost", "error", reason=reason)


def report_lost_cutover(reason: str) -> None:
    log.event("cutovers_lost", "error", reason=reason)


def extra_missing(location: str, error: ModuleNotFoundError) -> StateError:
    extra = extra_of(location)
    name = "PostgreSQL" if extra == "postgresql" else location
    return StateError(f"{name}: 'state' needs {error.name}, {install(extra)}")
