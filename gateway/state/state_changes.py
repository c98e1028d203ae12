"""StateChanges: what outlives a gateway, between the memory and the file."""

from dataclasses import dataclass, field

UsageKey = tuple[str, str, str, str | None]
UsageRow = tuple[str, str, str, str | None, int, int, int, int, float, float, float]
CountKey = tuple[str, tuple[str, ...]]
CountRow = tuple[str, tuple[str, ...], int, float, float]


class StateError(Exception):
    """A state file that cannot be used; the text says which, why, and what would help."""


@dataclass(slots=True)
class StateChanges:
    """What is in a store, or what is to be put there in place of what was.

    Attributes:
        usage: rows in the order of the table's columns.
        gone: the keys of the rows that are to be taken out.
        floors: by API and version.
        counts: rows in the order of the table's columns.
        uncounted: the keys of the counts that are to be taken out.
        documents: what JSON can say, by name.
    """

    usage: list[UsageRow] = field(default_factory=list)
    gone: list[UsageKey] = field(default_factory=list)
    floors: dict[tuple[str, str], int] = field(default_factory=dict)
    counts: list[CountRow] = field(default_factory=list)
    uncounted: list[CountKey] = field(default_factory=list)
    documents: dict[str, object] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is anything in it."""
        usage = self.usage or self.gone or self.floors
        return bool(usage or self.counts or self.uncounted or self.documents)
