"""StateStore: where a gateway keeps what must outlive it, whichever engine holds it."""

from pathlib import Path
from typing import Protocol

from gateway.usage.history import History, HistoryQuery
from gateway.usage.state_changes import StateChanges, StateError


class StateStore(Protocol):
    """An open store of state; one gateway writes to it.

    Attributes:
        name: the location of the store, for log lines and messages.
        unheard: the file that a worker makes while what it counts is not taken.
    """

    name: str
    unheard: Path

    async def read(self) -> StateChanges:
        """Return all of the state; raises StateError."""
        ...

    async def write(self, changes: StateChanges) -> None:
        """Store changes, all or none of them; without any, see whether the store is there.

        Raises:
            StateLostError: the store was removed and is empty; all of the state has to be written.
            StateError: nothing was stored.
        """
        ...

    async def history(self, query: HistoryQuery, now: float) -> History:
        """Return the intervals that are asked for at a time; raises StateError."""
        ...

    async def close(self) -> None:
        """Release the store; whatever was written stays."""
        ...


def open_store(path: Path, *, read_only: bool = False) -> StateStore:
    """Return the store of a location, created if it is not there and may be written.

    Args:
        path: of the file.
        read_only: whether it is the store of another process, to read from it.

    Raises:
        StateError: it cannot be used.
    """
    # SQLAlchemy is memory that neither workers nor a gateway without state need.
    try:
        from gateway.store.sqlite.sqlite_store import SqliteStore
    except ModuleNotFoundError as error:
        raise extra_missing(str(path), error, "state") from None
    return SqliteStore(path, read_only=read_only)


def extra_missing(name: str, error: ModuleNotFoundError, extra: str) -> StateError:
    """Return the error that a store needs an extra of this distribution."""
    return StateError(
        f"{name}: 'state' needs {error.name}, which is not installed; install"
        f" version-gateway[{extra}]"
    )
