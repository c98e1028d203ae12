"""StoredState: what a store has, read whether a gateway runs or not."""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from gateway.base.mistakes import Mistakes
from gateway.base.overrides import Overrides
from gateway.cli.command import CommandError
from gateway.rollout.decisions import overrides_of
from gateway.store.state import LAG_SECONDS, StateView, extra_missing
from gateway.store.state_section import build_state
from gateway.usage.history import HistoryQuery, HistoryView
from gateway.usage.totals import Totals


class StoredState(NamedTuple):
    """What a store has.

    Attributes:
        view: the sums.
        overrides: those in force.
        history: the intervals that were asked for; None if none were.
    """

    view: StateView
    overrides: Overrides
    history: HistoryView | None


def location(text: str) -> str:
    """Return the path of a file or the URL of a database, as `state` in the rules has it.

    Raises:
        CommandError: it is neither; the text may hold a password, and is not repeated.
    """
    mistakes = Mistakes()
    found = build_state(text, mistakes)
    for mistake in mistakes.found:
        raise CommandError(f"--state: {mistake.text}")
    if found is None:
        raise CommandError("--state: it is empty; name the file or the database of the state")
    return found


def read_stored(place: str, query: HistoryQuery | None = None) -> StoredState:
    """Return what a store has.

    Args:
        place: the path of its file, or the URL of its database.
        query: the history that is wanted.

    Raises:
        StateError: it cannot be read.
    """
    reading: Coroutine[Any, Any, StoredState]
    if "://" not in place:
        reading = _of_file(Path(place), query)
    else:
        try:
            # SQLAlchemy takes time that few commands need.
            from gateway.store.reading import read_stored_fleet
        except ModuleNotFoundError as error:
            raise extra_missing(place, error) from None

        async def of_database() -> StoredState:
            view, documents, history = await read_stored_fleet(place, query)
            return StoredState(view, overrides_of(documents), history)

        reading = of_database()
    return asyncio.run(reading)


async def _of_file(path: Path, query: HistoryQuery | None) -> StoredState:
    try:
        # SQLAlchemy takes time that few commands need.
        from gateway.store.sqlite import SqliteFile
    except ModuleNotFoundError as error:
        raise extra_missing(str(path), error) from None
    store, now = SqliteFile(path, read_only=True), time.time()
    try:
        state = await store.read()
        history = None if query is None else (await store.history(query, now)).view(query, now)
    finally:
        await store.close()
    # A gateway that runs writes so often what it has counted.
    view = StateView(Totals(state), now, now - 2 * LAG_SECONDS, None, ())
    return StoredState(view, overrides_of(state.documents), history)
