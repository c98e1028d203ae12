"""Contact: whether the database of a fleet is reached, and since when it is not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from gateway.observe import log
from gateway.usage.state_changes import StateBusyError, StateError, StateUnreachableError

# So many operators read at a time, and the others wait, for so many seconds at most: beats and
# judgements need connections too.
_READERS = 2
_PATIENCE = 10.0


class Contact:
    """How a replica stands with the database, by its beats and by who else asks it.

    Args:
        name: of the database.
        clock: returns its time, in seconds since 1970.

    Attributes:
        heard: when a beat was confirmed last, by the database; 0 if none ever was.
        stale_since: since when it has not been reached; None if it has.
        stale_reason: why it was not, at last; empty if it has been reached.
        behind: whether it may lack more than what is counted between two beats.
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
        """Note that a beat was confirmed at that time of the database."""
        self.behind = self.stale_since is not None  # what was added meanwhile comes with the next
        if self.behind:
            log.event("state_written", store=self._name)
        self.stale_since, self._missed, self.stale_reason = None, None, ""
        self.heard = now

    def missed(self, error: StateError) -> float:
        """Note what was met instead; return since when the database has not been reached."""
        if self.stale_since is None:
            log.event("state_unwritten", "error", reason=str(error))
            self.stale_since = self.heard or self._clock()
        self.behind, self.stale_reason = True, str(error)
        self._missed = partial(StateUnreachableError, str(error))  # without its frames
        return self.stale_since

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Wait for a turn to read.

        Raises:
            StateBusyError: there was none in time.
            StateUnreachableError: what was met last, to wait no longer for the same.
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
