"""Ledger: where changes of overrides and cutovers are written, with who made them and why."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from gateway.base.overrides import VersionKey
from gateway.observe import log
from gateway.usage.state_changes import StateChanges
from gateway.usage.totals import Totals


class Order(NamedTuple):
    """Who wants a change.

    Attributes:
        who: the name of the person, as the command or the request gives it, or GATEWAY.
        origin: the address that the request came from; empty for the gateway.
        why: the reason; empty if none was given.
        seen: what the person saw, in a word; in another state, nothing is changed. Empty where
            that does not matter.
    """

    who: str
    origin: str
    why: str
    seen: str = ""

    def check_seen(self, current: str, text: str) -> None:
        """Return if this is what the person saw.

        Args:
            current: what is true now, in a word.
            text: the same, as a text.

        Raises:
            ChangedMeanwhileError: the person saw something else.
        """
        if self.seen not in ("", current):
            raise ChangedMeanwhileError(text)


class ChangedMeanwhileError(Exception):
    """What somebody saw has changed before it was to be changed; the text is what is true now."""


GATEWAY = "gateway"
"""Who decides where no operator does; such an order has no origin."""
BY_GATEWAY = Order(GATEWAY, "", "")


class AuditEntry(NamedTuple):
    """A change that was made: when, by whom, from where, what, why, and what was before and after.

    `at` is in seconds since 1970, by the clock of the store.
    """

    at: float
    who: str
    origin: str
    what: str
    api: str
    version: str
    why: str
    before: str
    after: str


class SharedDocuments(Protocol):
    """JSON values by name, which all replicas share; each method raises StateError."""

    async def read(self, name: str) -> tuple[object, float]:
        """Return a document, None if there is none, and the time by the clock of the store."""
        ...

    async def change(self, name: str, change: Callable[[object], object]) -> None:
        """Replace a document by what a function makes of it, while no other replica does so."""
        ...


class Ledger(Protocol):
    """The documents and the audit log of a state, as one change sees them."""

    @property
    def totals(self) -> Totals:
        """The sums that gates judge."""
        ...

    @property
    def documents(self) -> Mapping[str, object]:
        """JSON values by name."""
        ...

    async def keep(self, name: str, document: object) -> None:
        """Keep a document under a name."""
        ...

    def record(self, order: Order, what: str, key: VersionKey, before: str, after: str) -> None:
        """Add an entry to the audit log."""
        ...

    def announce(self, event: str, **fields: object) -> None:
        """Write an event to the log once what it is about is stored."""
        ...


class DraftLedger:
    """A Ledger that writes nothing: it collects what one act changes, to be stored as a whole.

    Args:
        documents: JSON values by name, as they are.
        now: the time of the act, in seconds since 1970, by the clock of the store.
        totals: the sums that gates judge; none for an operator's act.

    Attributes:
        totals: the same.
        documents: JSON values by name, as they will be.
        changed: the names of those that will be others.
        entries: of the audit log.
    """

    def __init__(
        self, documents: Mapping[str, object], now: float, totals: Totals | None = None
    ) -> None:
        self._now = now
        self.totals = totals or Totals(StateChanges())
        self.documents = documents
        self.changed: set[str] = set()
        self.entries: list[AuditEntry] = []
        self._events: list[tuple[str, dict[str, Any]]] = []

    async def keep(self, name: str, document: object) -> None:
        """Keep a document under a name."""
        if self.documents.get(name) != document:
            self.documents = {**self.documents, name: document}
            self.changed.add(name)

    def record(self, order: Order, what: str, key: VersionKey, before: str, after: str) -> None:
        """Add an entry to the audit log."""
        who, origin, why, _ = order
        self.entries.append(AuditEntry(self._now, who, origin, what, *key, why, before, after))

    def announce(self, event: str, **fields: object) -> None:
        """Keep an event; `log` writes it."""
        self._events.append((event, fields))

    def log(self) -> None:
        """Write the events to the log: what they are about is stored."""
        for event, fields in self._events:
            log.event(event, **fields)
