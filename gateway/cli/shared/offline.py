"""Input of commands that need no running gateway: bodies, conversions and the store."""

import asyncio
import os
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gateway.base.files import MAX_BYTES
from gateway.base.mistakes import Mistakes
from gateway.base.overrides import Overrides
from gateway.cli.shared.arguments import CommandError
from gateway.conversion.declared.conversion import Part
from gateway.http.limits import Limits
from gateway.rollout.decisions import overrides_of
from gateway.routing.snapshot import Snapshot
from gateway.rules.document import read
from gateway.rules.load import read_rules, validated
from gateway.store.state import LAG_SECONDS, StateView, extra_missing
from gateway.store.state_location import parse_state
from gateway.usage.history import HistoryQuery, HistoryView
from gateway.usage.totals import Totals


def declared_parts(path: Path, snapshot: Snapshot) -> Mapping[str, Sequence[Part]]:
    config = validated(read(read_rules(path), str(path), os.environ))
    return {api.name: config.apis[api.name].parts(api) for api in snapshot.apis}


def read_body(path: Path, limits: Limits) -> bytes:
    """Return the body in a file, without a final line feed.

    Args:
        path: the path of the file, or `-` for standard input. It may be a device without an end.
        limits: the limits in the configuration. The maximum size is `limits.convert` or MAX_BYTES,
            whichever is larger.

    Raises:
        ValueError: the file cannot be read or is too large.
    """
    most = max(MAX_BYTES, limits.convert)
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(most + 2)
        else:
            with path.open("rb") as file:
                content = file.read(most + 2)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; name a file, or -") from None
    content = content.removesuffix(b"\n")
    if len(content) > most:
        raise ValueError(f"the body is larger than {most} bytes; use a smaller one")
    return content


class _StoredState(NamedTuple):
    view: StateView
    overrides: Overrides
    history: HistoryView | None


def location(text: str) -> str:
    """Parse `--state`, a path or a URL; raises CommandError.

    The message does not quote the argument, since it may contain a password.
    """
    mistakes = Mistakes()
    found = parse_state(text, mistakes)
    for mistake in mistakes.found:
        raise CommandError(f"--state: {mistake.text}")
    if found is None:
        raise CommandError("--state: empty; name the file or the database of the state")
    return found


def read_stored(place: str, query: HistoryQuery | None = None) -> _StoredState:
    """Read a store directly, whether or not a gateway is running; raises StateError."""
    reading: Coroutine[Any, Any, _StoredState]
    if "://" not in place:
        reading = _of_file(Path(place), query)
    else:
        try:
            # SQLAlchemy takes long to import, and few commands need it.
            from gateway.store.reading import read_stored_fleet
        except ModuleNotFoundError as error:
            raise extra_missing(place, error) from None

        async def of_database() -> _StoredState:
            view, documents, history = await read_stored_fleet(place, query)
            return _StoredState(view, overrides_of(documents), history)

        reading = of_database()
    return asyncio.run(reading)


async def _of_file(path: Path, query: HistoryQuery | None) -> _StoredState:
    try:
        # SQLAlchemy takes long to import, and few commands need it.
        from gateway.store.sqlite import SqliteFile
    except ModuleNotFoundError as error:
        raise extra_missing(str(path), error) from None
    store, now = SqliteFile(path, read_only=True), time.time()
    try:
        state = await store.read()
        history = None if query is None else (await store.history(query, now)).view(query, now)
    finally:
        await store.close()
    # A running gateway writes its counts every LAG_SECONDS, so later counts may be missing.
    view = StateView(Totals(state), now, now - 2 * LAG_SECONDS, None, ())
    return _StoredState(view, overrides_of(state.documents), history)
