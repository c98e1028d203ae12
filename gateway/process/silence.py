"""Silence: a worker's supervisor that takes nothing more, and the file that outlives both."""

from contextlib import suppress
from pathlib import Path

from gateway.observe import log

# A supervisor that leaves so many reports unanswered is silent. When it has answered so many, each
# before the next one, it has handed in what was counted meanwhile.
_UNANSWERED = 3
_IN_TIME = 5


class Silence:
    """Counts the reports that a supervisor leaves unanswered.

    A supervisor that is suspended alone, or hangs, leaves its workers serving. Where it is killed
    then, what they counted is gone, and nothing that it wrote shows that. So they make a file,
    which the next start finds. Reports are counted rather than seconds: while all processes stand
    still, as those of a frozen container, nobody serves.

    Args:
        mark: the file to make while nothing is taken; None where nothing outlives the processes.
    """

    def __init__(self, mark: Path | None) -> None:
        self._mark = mark
        self._unanswered = self._in_time = 0
        self._silent = self._ended = False

    def reported(self) -> None:
        """Note that a report was sent."""
        self._in_time = 0 if self._unanswered else self._in_time + 1
        self._unanswered += 1
        if self._unanswered < _UNANSWERED or self._silent or self._ended:
            return
        self._silent = True
        log.event("supervisor_silent", "error", reports=self._unanswered)
        if self._mark is not None:
            try:
                self._mark.touch(0o600)
            except OSError as error:
                reason = f"{self._mark}: {(error.strerror or str(error)).lower()}"
                log.event("mark_not_kept", "warning", reason=reason)

    def answered(self) -> None:
        """Note that one was answered."""
        self._unanswered = 0
        if not self._silent or self._in_time < _IN_TIME:
            return
        self._silent = False
        log.event("supervisor_heard")
        if self._mark is not None:
            with suppress(OSError):
                self._mark.unlink()

    def end(self) -> None:
        """Make no file from here on: the supervisor has ended, and another may have started."""
        self._ended = True
