"""Reload: a changed gateway.yaml takes effect, or is reported and the old rules stay."""

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

from gateway.config.load import load_file
from gateway.config.text.mistakes import ConfigError
from gateway.core.snapshot import Snapshot
from gateway.telemetry import log


class Reloader:
    """Loads the rules, and loads them again when told to or when the file is another.

    The file is looked at once an interval rather than watched: that sees an edit in place, an
    atomic rename, a symlink that is turned elsewhere (as mounted volumes do) and a network file
    system alike, where notifications see some of them. A look is one `stat`.

    Args:
        path: the file.
        environment: the variables that it may use.
        interval: between two looks, in seconds; None looks only when told to.

    Attributes:
        folder: where the file is, and what it names by a relative path.
        latest: the rules as they were last when they could be used.
        taken: how often other rules were.
        rejected: how often they could not be used.

    Raises:
        ConfigError: they cannot be used at the start.
    """

    def __init__(
        self, path: Path, environment: Mapping[str, str], interval: float | None = 0.5
    ) -> None:
        self._path = path
        self.folder = path.parent
        self._environment = environment
        self._interval = interval
        self._told = asyncio.Event()
        self._seen = self._stamp()
        self._first = self.latest = self._load()
        self.taken = self.rejected = 0

    def _load(self) -> Snapshot:
        # The garbage collector would look at all that is new again and again, and stop every
        # request each time; it comes by once when the rules are taken.
        gc.disable()
        try:
            return load_file(self._path, self._environment)
        finally:
            gc.enable()

    def tell(self) -> None:
        """Load the file again, changed or not."""
        self._told.set()

    async def changes(self) -> AsyncIterator[Snapshot]:
        """Yield the new rules each time; what is wrong with a broken file goes to the log."""
        while True:
            await self._wait()
            try:
                # Off the loop: a large file takes a while, and requests go on meanwhile.
                self.latest = await asyncio.to_thread(self._load)
            except ConfigError as error:
                self.rejected += 1
                for issue in error.report().splitlines():
                    log.event("config_rejected", "error", issue=issue)
            else:
                self.taken += 1
                if self._interval is not None:  # workers are told; who tells them warns
                    _warn(self._first, self.latest)
                yield self.latest
                # What loading left behind; else it would wait until there is as much again.
                gc.collect()

    async def _wait(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._told.wait()
            stamp = self._stamp()
            changed = stamp is not None and stamp != self._seen
            if changed or self._told.is_set():
                self._told.clear()
                self._seen = stamp
                return

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None  # between the two halves of a rename, or gone: the old rules stay
        return status.st_mtime_ns, status.st_ino, status.st_size


def _warn(first: Snapshot, latest: Snapshot) -> None:
    for key in ("state", "workers"):
        if getattr(first, key) != getattr(latest, key):
            reason = f"'{key}' changed, which is taken up at a restart; all else is in force"
            log.event("restart_needed", "warning", reason=reason)
