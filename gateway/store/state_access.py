"""StateAccess: what operators read and change, of one gateway or of a whole fleet."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from gateway.base.overrides import Overrides, VersionKey
from gateway.observe.failing_service import FailingService
from gateway.rollout.gates import GateResult
from gateway.store.active_overrides import Apply
from gateway.store.cutover_controller import CurrentCutover
from gateway.store.ledger import AuditEntry, Order, SharedDocuments
from gateway.usage.delta import Delta
from gateway.usage.history import HistoryQuery, HistoryView
from gateway.usage.interval import Interval
from gateway.usage.totals import Totals

SetAhead = Callable[[float], None]
SILENT_SECONDS = 5.0
"""After so many seconds without a word, what reports once a second counts as lost."""


LAG_SECONDS = 2.0
"""So many seconds after a request, its process has handed in what it counted: it does once a
second."""
IN_FORCE_SECONDS = 2.0
"""So many seconds after a change, each replica that is heard has it in force."""


class UnknownReplicaError(LookupError):
    """A replica that cannot be asked here; the text names it and what would be right."""


class Doubt(NamedTuple):
    """Something that the sums may lack.

    Attributes:
        replica: the replica that is not heard; None if it is the database.
        since: when it was heard last, in seconds since 1970.
    """

    replica: str | None
    since: float


class StateView(NamedTuple):
    """What is known at a time.

    Attributes:
        totals: the sums.
        now: the time, in seconds since 1970, by the clock that the sums go by.
        counted: the time up to which the sums have all that the gateways served.
        replica: the name of the replica whose counts alone these are; None for all of them.
        doubts: what the sums may lack.
    """

    totals: Totals
    now: float
    counted: float
    replica: str | None
    doubts: tuple[Doubt, ...]


class VersionReading(NamedTuple):
    """What is known of one version at a time.

    Attributes:
        view: the sums.
        days: its history by the day, by when each began, in seconds since 1970.
        minutes: its history by the minute, likewise; callers may be left out.
        latest: the latest change of it that somebody made; None if there was none, or it is not
            known.
    """

    view: StateView
    days: Mapping[int, Interval]
    minutes: Mapping[int, Interval]
    latest: AuditEntry | None


class ReplicaView(NamedTuple):
    """A replica of the fleet; times in seconds since 1970.

    Attributes:
        replica: its name.
        presence: `heard`, or `lost`.
        judges: whether it judges cutovers.
        version: of the gateway.
        rules: the hash of the rules in force.
        admin: the address of its admin port.
        started: when it started.
        heard: when it was heard last.
        lag: how long ago that was, in seconds.
        behind: the number of its batches that are not in the sums yet.
        refused: why its rules on disk are not in force; empty if they are.
        failing: the services with targets that fail there.
    """

    replica: str
    presence: str
    judges: bool
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
    """All replicas, and what is wrong with them, a sentence each."""

    replicas: list[ReplicaView]
    warnings: list[str]


class Turn(NamedTuple):
    """When a replica acts for all while the store is away, by who judged when it was last reached.

    Attributes:
        rank: 0 for the one that judged, 1 for its deputy, 2 for all others. One that has not
            reached the store since its start cannot know who judged, and speaks for itself: 0.
        term: the number of the one that judged, which all replicas know; 0 for none.
    """

    rank: int
    term: int


class StateAccess(Protocol):
    """The state of a gateway.

    Each method that changes something returns when that is in force in this gateway.

    Attributes:
        replica: the name of this gateway.
        totals: what this gateway has counted.
        admin: the address of its admin port, once it has one.
        failing: returns the services with targets that fail in this gateway.
        documents: what all replicas share beside that.

    Raises:
        StateError: by each method, the store cannot be reached; nothing was changed.
        TimeoutError: by each method that changes something, a worker has not confirmed it in time.
    """

    replica: str
    totals: Totals
    admin: str
    failing: Callable[[], list[FailingService]]
    documents: SharedDocuments

    @property
    def unheard(self) -> Path | None:
        """The file that a worker makes while what it counts is not taken; None without a disk."""
        ...

    @property
    def judges(self) -> bool:
        """Whether this gateway acts for all replicas now."""
        ...

    @property
    def turn(self) -> Turn:
        """When this gateway acts for all replicas while the store is away."""
        ...

    @property
    def tasks(self) -> Mapping[str, Callable[[], Coroutine[None, None, None]]]:
        """What has to run while the gateway serves, by name."""
        ...

    @property
    def in_force(self) -> Overrides:
        """The overrides in force."""
        ...

    @property
    def stale_since(self) -> float | None:
        """Since when the store has not been reached, in seconds since 1970; None if it has."""
        ...

    @property
    def now(self) -> float:
        """The time that all gateways of the state go by, in seconds since 1970."""
        ...

    @property
    def stale_reason(self) -> str:
        """Why the store was not reached at last, for people; empty if it was."""
        ...

    def follow(self, apply: Apply, set_ahead: SetAhead) -> None:
        """Set what puts the word of all in force in every process of this gateway.

        Args:
            apply: applies overrides.
            set_ahead: takes by how many seconds the time that all go by is ahead of the clock of
                this machine; at once, and whenever that changes.
        """
        ...

    def absorb(self, delta: Delta) -> None:
        """Add what a process of this gateway has counted."""
        ...

    async def close(self) -> None:
        """Write what is left, and release the store."""
        ...

    async def view(
        self, key: VersionKey | None = None, replica: str | None = None, *, clients: bool = True
    ) -> StateView:
        """Return the sums of all replicas, or of one.

        Args:
            key: the version; None for all.
            replica: the name of the only replica; None for all.
            clients: whether the rows of clients and all counts are wanted, which are many.
                Without them, the view has the last call of a version and the violations alone.

        Raises:
            UnknownReplicaError: that replica is another one.
        """
        ...

    async def version(self, key: VersionKey) -> VersionReading:
        """Return what is known of one version, all of it at the same time."""
        ...

    async def history(self, query: HistoryQuery) -> HistoryView:
        """Return the intervals of the history that are asked for."""
        ...

    async def cutover(self, key: VersionKey) -> CurrentCutover:
        """Return how a cutover stands."""
        ...

    def gate_results(self, key: VersionKey) -> tuple[GateResult, ...]:
        """Return the results of the gates now, or those for which they rolled the cutover back."""
        ...

    async def pause(self, key: VersionKey, order: Order) -> None:
        """Pause the brownouts of a version."""
        ...

    async def resume(self, key: VersionKey, order: Order) -> None:
        """End the pause of brownouts."""
        ...

    async def set_percent(self, key: VersionKey, percent: float | None, order: Order) -> None:
        """Set the percentage of a cutover, or with None fix it where it stands."""
        ...

    async def clear_percent(self, key: VersionKey, order: Order) -> None:
        """Return to the percentage of the rules."""
        ...

    async def reset_shadow(self, key: VersionKey, order: Order) -> None:
        """Delete what the shadow of a version has counted."""
        ...

    async def audit(self) -> list[AuditEntry]:
        """Return the latest changes, the latest last."""
        ...

    async def fleet(self) -> FleetView:
        """Return the replicas."""
        ...

    async def forget(self, replica: str, order: Order) -> None:
        """Forget a replica that is lost.

        Raises:
            UnknownReplicaError: it is not lost, or there is none of that name.
        """
        ...

    async def record(self, order: Order, what: str, about: str) -> None:
        """Add an act to the audit log that changes nothing in the state.

        Args:
            order: who does it, and why.
            what: it is.
            about: what it is done to; empty for nothing in particular.
        """
        ...
