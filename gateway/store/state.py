"""State: what operators read and change, of one gateway or of a whole fleet."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gateway.base.overrides import NO_OVERRIDES, Overrides, VersionKey
from gateway.observe import log
from gateway.observe.failing_targets import FailingService
from gateway.rollout.cutover import VersionCutover
from gateway.rollout.cutovers import ClockTime, CurrentCutover, Cutovers, PercentCommand
from gateway.rollout.decisions import AuditEntry, ChangeRequest, Draft, Event
from gateway.routing.snapshot import Snapshot
from gateway.usage.delta import Delta
from gateway.usage.history import HistoryQuery, HistoryView, Interval
from gateway.usage.totals import Totals

Apply = Callable[[Overrides], Awaitable[None]]
SetAhead = Callable[[float], None]
Change = Callable[[Draft, Cutovers, ClockTime], None]
"""A change of a draft, by the states of the cutovers at a moment."""
SILENT_SECONDS = 5.0
"""A replica without a heartbeat for this long is lost."""
LAG_SECONDS = 2.0
"""The maximum delay between a request and its count in the sums: processes report once a second."""
IN_FORCE_SECONDS = 2.0
"""The maximum delay until a change is in force on every replica that sends heartbeats."""


class StateError(Exception):
    """The store cannot be used; the text has its name, the reason and a remedy."""


class StateUnreachableError(StateError):
    """The store cannot be reached now; a retry may succeed."""


class StateUnsureError(StateUnreachableError):
    """The connection broke during a commit, so the change may be stored or not."""


class StateBusyError(StateError):
    """All places for readers were taken for too long."""


class StateLostError(StateError):
    """The file was removed while the gateway ran, and was created again, empty."""


class UnknownReplicaError(LookupError):
    """There is no such replica here; the text names the known ones."""


class DataGap(NamedTuple):
    """A reason why the sums may lack counts.

    Attributes:
        replica: the replica without heartbeats; None if the database is away.
    """

    replica: str | None
    since: float


class StateView(NamedTuple):
    """The sums at a time.

    Attributes:
        now: the time in seconds since 1970, by the clock of the store.
        counted: the time up to which the sums are complete.
        replica: the name of the replica if these are its own counts; None for those of all.
    """

    totals: Totals
    now: float
    counted: float
    replica: str | None
    gaps: tuple[DataGap, ...]


class VersionReading(NamedTuple):
    """All data of one version at a time.

    Attributes:
        days: its history by the day, by the start of each, in seconds since 1970.
        minutes: its history by the minute, likewise; callers may be missing.
        latest: its latest change in the audit log; None if there is none, or it is not known.
    """

    view: StateView
    days: Mapping[int, Interval]
    minutes: Mapping[int, Interval]
    latest: AuditEntry | None


class ReplicaView(NamedTuple):
    """A replica; times in seconds since 1970.

    Attributes:
        presence: `heard`, or `lost`.
        leads: whether it is the leader.
        rules: the hash of the configuration in force.
        lag: the age of that heartbeat, in seconds.
        behind: the number of its batches that are not in the sums yet.
        refused: the reason why its configuration on disk is not in force; empty if it is.
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
    """All replicas, and a sentence for each problem."""

    replicas: list[ReplicaView]
    warnings: list[str]


class FailoverRank(NamedTuple):
    """When a replica acts for all while the store is away.

    Attributes:
        rank: 0 for the last leader, 1 for its deputy, 2 for all others. A replica that has not
            reached the store since its start cannot know the leader, and acts for itself: 0.
        term: the token of the last leader, which all replicas know; 0 for none.
    """

    rank: int
    term: int


class Membership(NamedTuple):
    """A gateway as the store sees it.

    Attributes:
        rules_hash: returns the hash of its text.
        refused: returns the reason why the configuration on disk is not in force; empty if it is.
        overrides_file: the file for the overrides that a replica of a fleet read last.
    """

    replica: str
    rules: Callable[[], Snapshot]
    rules_hash: Callable[[], str]
    refused: Callable[[], str] = str
    overrides_file: Path = Path()


# The maximum number of operators that read at a time, as heartbeats and rounds of the leader need
# connections, too; and for how many seconds others wait.
_READERS = 2
_PATIENCE = 10.0


class StoreHealth:
    """Whether the store is reached, by those who write and those who read.

    Attributes:
        heard: the last confirmed heartbeat or write; 0 for none.
        stale_since: since when the store has not been reached, in seconds since 1970; None if it is
            reached.
        behind: whether it may lack more than the counts since the last one.
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
        """Note a heartbeat or a write that was confirmed at that time."""
        self.behind = self.stale_since is not None  # the next one has what was added meanwhile
        if self.behind:
            log.event("state_written", store=self._name)
        self.stale_since, self._missed, self.stale_reason = None, None, ""
        self.heard = now

    def missed(self, error: StateError) -> float:
        """Note a failure; return since when the store has not been reached."""
        if self.stale_since is None:
            log.event("state_unwritten", "error", reason=str(error))
            self.stale_since = self.heard or self._clock()
        self.behind, self.stale_reason = True, str(error)
        self._missed = partial(StateUnreachableError, str(error))  # without its traceback
        return self.stale_since

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Wait until fewer than the maximum number of readers read.

        Raises:
            StateBusyError: there was none in time.
            StateUnreachableError: the store is away; nobody waits for it a second time.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._readers.acquire()
        except TimeoutError:
            raise StateBusyError(
                f"{self._name}: {_READERS} others have read for {_PATIENCE:g} s; ask again, for one"
                " version where that is enough"
            ) from None
        try:
            if self._missed is not None:
                raise self._missed()
            yield
        finally:
            self._readers.release()


class State(ABC):
    """The state of a gateway.

    Each method that changes something returns when the change is in force in this gateway.

    Args:
        store: the name of the store, for log lines.
        clock: returns the time of the store, in seconds since 1970.

    Attributes:
        in_force: the overrides in force.
        failing: returns the services with failing targets in this gateway.
        unheard: the file that a worker makes while its counts are not taken; None without a disk.
        tasks: coroutines that have to run while the gateway serves, by name.

    Raises:
        StateError: by each method, the store cannot be reached; nothing was changed.
        TimeoutError: by each method that changes something, a worker has not confirmed it in time.
    """

    unheard: Path | None
    tasks: Mapping[str, Callable[[], Coroutine[None, None, None]]]

    def __init__(self, membership: Membership, store: str, clock: Callable[[], float]) -> None:
        self.membership = membership
        self.replica = membership.replica
        self.totals = Totals()
        self.admin = ""
        self.failing: Callable[[], list[FailingService]] = list
        self.in_force = NO_OVERRIDES
        self._documents: Mapping[str, object] = {}
        self._date = clock
        self._health = StoreHealth(store, clock)
        self._apply: Apply | None = None

    @property
    @abstractmethod
    def leads(self) -> bool:
        """Whether this gateway acts for all replicas now."""

    @property
    @abstractmethod
    def failover(self) -> FailoverRank:
        """When this gateway acts for all replicas while the store is away."""

    @property
    def stale_since(self) -> float | None:
        """Since when the store has not been reached, in seconds since 1970; None if it is."""
        return self._health.stale_since

    @property
    def stale_reason(self) -> str:
        return self._health.stale_reason

    @property
    def now(self) -> float:
        """The time of the store, in seconds since 1970."""
        return self._date()

    def follow(self, apply: Apply, set_ahead: SetAhead) -> None:
        """Set the functions that take changes to every process of this gateway.

        Args:
            set_ahead: takes by how many seconds the clock of the store is ahead of this machine's;
                called at once, and whenever that changes.
        """
        self._apply = apply

    def absorb(self, delta: Delta) -> None:
        """Add the counts of a process of this gateway."""
        self.totals.absorb(delta)

    @abstractmethod
    async def close(self) -> None:
        """Store what is left, and release the store."""

    @abstractmethod
    async def view(
        self, key: VersionKey | None = None, replica: str | None = None, *, clients: bool = True
    ) -> StateView:
        """Return the sums of all replicas, or of one.

        Args:
            replica: the name of the only replica; None for all.
            clients: whether the rows of clients and all counts are needed, which are many. Without
                them, the view has the last call of each version, and violations alone.

        Raises:
            UnknownReplicaError: that replica is another one.
        """

    @abstractmethod
    async def version(self, key: VersionKey) -> VersionReading:
        """Return all data of one version at one moment."""

    @abstractmethod
    async def history(self, query: HistoryQuery) -> HistoryView:
        """Return the intervals of a query."""

    @abstractmethod
    def cutover(self, key: VersionKey) -> CurrentCutover:
        """Return a cutover for operators."""

    @abstractmethod
    async def audit(self) -> list[AuditEntry]:
        """Return the latest changes, the latest last."""

    @abstractmethod
    async def fleet(self) -> FleetView:
        """Return the replicas."""

    @abstractmethod
    async def forget(self, replica: str, request: ChangeRequest) -> None:
        """Forget a lost replica.

        Raises:
            UnknownReplicaError: it is not lost, or there is none of that name.
        """

    @abstractmethod
    async def reset_shadow(self, key: VersionKey, request: ChangeRequest) -> None:
        """Delete the counts of the shadow of a version."""

    @abstractmethod
    async def read_document(self, name: str) -> tuple[object, float]:
        """Return a shared document, or None, and the time of the store."""

    @abstractmethod
    async def change_document(self, name: str, change: Callable[[object], object]) -> None:
        """Replace a shared document by the result of a function, under a lock."""

    async def pause(self, key: VersionKey, request: ChangeRequest) -> None:
        """Pause the brownouts of a version; raises ChangedMeanwhileError."""
        await self._change(lambda draft, *_: draft.pause(key, request, paused=True))

    async def resume(self, key: VersionKey, request: ChangeRequest) -> None:
        """End the pause of brownouts; raises ChangedMeanwhileError."""
        await self._change(lambda draft, *_: draft.pause(key, request, paused=False))

    async def set_percent(
        self, key: VersionKey, percent: float | None, request: ChangeRequest
    ) -> None:
        """Set the percentage of a cutover, or with None fix it; raises ChangedMeanwhileError.

        No gate changes it until it is cleared.
        """
        await self._order(key, PercentCommand.STAY if percent is None else percent, request)

    async def clear_percent(self, key: VersionKey, request: ChangeRequest) -> None:
        """Return to the configured percentage; raises ChangedMeanwhileError."""
        await self._order(key, PercentCommand.CLEAR, request)

    async def record(self, request: ChangeRequest, what: str, about: str) -> None:
        """Add an act to the audit log that changes nothing in the state."""
        note = (about, "")
        await self._change(lambda draft, *_: draft.record(request, what, note), applies=False)

    @abstractmethod
    async def _change(
        self, change: Change, key: VersionKey | None = None, *, applies: bool = True
    ) -> None:
        """Store a change as a whole, then put it in force.

        Args:
            key: the version whose cutover changes.
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
    """Log the events of a change that is stored."""
    for event in events:
        log.event(event.name, event.level, **event.fields)


def report_lost_overrides(reason: str) -> None:
    log.event("overrides_lost", "error", reason=reason)


def report_lost_cutover(reason: str) -> None:
    log.event("cutovers_lost", "error", reason=reason)


def extra_missing(location: str, error: ModuleNotFoundError) -> StateError:
    name, extra = ("PostgreSQL", "postgresql") if "://" in location else (location, "state")
    return StateError(
        f"{name}: 'state' needs {error.name}, which is not installed; install"
        f" version-gateway[{extra}]"
    )
