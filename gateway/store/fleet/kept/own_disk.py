"""OwnDisk: writes to the disk of a replica, for which neither its beats nor its end wait long.

A disk that does not answer, as one of a network may not, would keep the replica from being heard.
"""

import asyncio
import time
from collections.abc import Callable

from gateway.base.daemon_thread import in_daemon_thread

# So long a write is waited for, in seconds: less than a lease lasts.
_PATIENCE = 1.0
# After so many seconds, it is reported that a write does not end.
_LONG = 10.0


class OwnDisk:
    """Has one file written, one write at a time.

    Args:
        report: takes why nothing is written.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._writing: asyncio.Future[None] | None = None
        self._began = 0.0

    @property
    def busy(self) -> bool:
        """Whether a write goes on."""
        return self._writing is not None and not self._writing.done()

    async def write(self, call: Callable[[], None]) -> bool:
        """Call a function that writes, unless a write goes on; return whether it has returned."""
        if self.busy:
            if time.monotonic() - self._began > _LONG:
                self._report("the disk does not answer")
            return False
        self._began = time.monotonic()
        writing = self._writing = asyncio.ensure_future(in_daemon_thread(call))
        done, _ = await asyncio.wait([writing], timeout=_PATIENCE)
        try:
            if done:
                writing.result()
        except RuntimeError as error:  # no thread is to be had
            self._report(str(error))
            return False
        return bool(done)
