"""StateChanges: the rows of state that go between the memory of a gateway and its store."""

from dataclasses import dataclass, field

from gateway.usage.interval import IntervalRow

AuditRow = tuple[float, str, str, str, str, str, str, str, str]

UsageKey = tuple[str, str, str, str | None]
UsageRow = tuple[str, str, str, str | None, int, int, int, int, float, float, float]
CountKey = tuple[str, tuple[str, ...]]
CountRow = tuple[str, tuple[str, ...], int, float, float]


class StateError(Exception):
    """A store that cannot be used; the text names it, the reason, and what would help."""


class StateUnreachableError(StateError):
    """A store that cannot be reached now, and may be later."""


class StateUnsureError(StateUnreachableError):
    """A store that was lost while it confirmed a change, which it may have made or not."""


class StateBusyError(StateError):
    """A store that others read for so long that there was no turn in time."""


class StateLostError(StateError):
    """A store that was removed while the gateway ran, and is empty again."""


@dataclass(slots=True)
class StateChanges:
    """All rows of a store, or the rows that replace those of the same key.

    Attributes:
        usage: rows of usage.
        gone: the keys of the rows of usage to delete.
        floors: the floor of each version's TopClients, by API and version.
        counts: rows of counts.
        uncounted: the keys of the counts to delete.
        documents: JSON values by name.
        audit: rows of the audit log, which are added; the latest of a store.
        history: what the intervals of the history have more; none of a store.
    """

    usage: list[UsageRow] = field(default_factory=list)
    gone: list[UsageKey] = field(default_factory=list)
    floors: dict[tuple[str, str], int] = field(default_factory=dict)
    counts: list[CountRow] = field(default_factory=list)
    uncounted: list[CountKey] = field(default_factory=list)
    documents: dict[str, object] = field(default_factory=dict)
    audit: list[AuditRow] = field(default_factory=list)
    history: list[IntervalRow] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Return whether there is any row."""
        usage = self.usage or self.gone or self.floors
        counts = self.counts or self.uncounted or self.history
        return bool(usage or counts or self.documents or self.audit)
