"""LogFile: the lines of a file that another process writes to and that is rotated.

A file is known by its first line, wherever it is moved: the line has the time and the id of a
request. Rotation renames the file to FILE.1 or FILE-20261122 and has the writer open FILE anew;
where it is copied and truncated instead, lines may be lost unseen.
"""

import os
import re
from hashlib import sha256
from math import inf, nextafter
from pathlib import Path
from typing import NamedTuple

_PART = 4 * 1024 * 1024


class LogPlace(NamedTuple):
    """A place in a log, up to which it was read.

    Attributes:
        mark: The hash of the first line of the file; empty where nothing was read yet.
        offset: The number of bytes of that file that were read.
    """

    mark: str = ""
    offset: int = 0


class LogPart(NamedTuple):
    """What was read.

    Attributes:
        lines: The lines, without their ends, each with the place where it begins.
        place: The place behind them.
        at_end: Whether there is no more now.
        problem: What was lost, as a part of a sentence; empty if nothing was.
    """

    lines: list[tuple[int, bytes]]
    place: LogPlace
    at_end: bool
    problem: str = ""


class LogFile:
    """A log from a place on.

    Args:
        path: of the file that is written to.
        place: up to which it was read.
        since: where nothing was read yet, or the file of the place is gone, files that were written
            to since this time, in seconds since 1970, are read as well; those before were read.
        limit: the number of bytes that are read at a time, which is also the longest line.
    """

    def __init__(self, path: Path, place: LogPlace, since: float, limit: int = _PART) -> None:
        self._path = path
        self._place = place
        self._since = since
        self._limit = limit
        self._file = -1
        self._mark = ""
        self._offset = 0
        self._skipping = False

    def read(self) -> LogPart:
        """Return the next lines; raises OSError if there is no file, or if it cannot be read."""
        if self._file < 0 and (problem := self._open()):
            return self._part(problem=problem)
        if os.fstat(self._file).st_size < self._offset:
            self.close()  # what was read may stand in a copy
            return self._part()
        data = os.pread(self._file, self._limit, self._offset)
        end = (data.find(b"\n") if self._skipping else data.rfind(b"\n")) + 1
        if not end and len(data) == self._limit:
            problem = "" if self._skipping else self._line("is too long")
            self._skipping = True
            self._offset += len(data)
            return self._part(problem=problem)
        if not end:
            return self._go_on(data)
        lines = [] if self._skipping else self._numbered(data[: end - 1])
        self._skipping = False
        self._offset += end
        self._mark = self._mark or _mark(self._file)
        self._place = LogPlace(self._mark, self._offset)
        return self._part(*lines)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _part(self, *lines: tuple[int, bytes], at_end: bool = False, problem: str = "") -> LogPart:
        return LogPart([*lines], self._place, at_end, problem)

    def _line(self, what: str) -> str:
        return f"the line at byte {self._offset} of {self._path} {what}"

    def _numbered(self, data: bytes) -> list[tuple[int, bytes]]:
        found, offset = [], self._offset
        for line in data.split(b"\n"):
            found.append((offset, line))
            offset += len(line) + 1
        return found

    def _go_on(self, unfinished: bytes) -> LogPart:
        """Go on with the next file, if the writer writes there already."""
        own = os.fstat(self._file)
        for path in _files(self._path):
            found = path.stat()
            if (
                found.st_size
                and found.st_mtime_ns >= own.st_mtime_ns
                and found.st_ino != own.st_ino
            ):
                break
        else:
            # What was written until then is read, and not to be read again if this one is gone.
            self._since = nextafter(own.st_mtime, inf)
            return self._part(at_end=True)
        # From now on, nothing is added to this one; what was added meanwhile is read first.
        if os.fstat(self._file).st_size > self._offset + len(unfinished):
            return self._part()
        problem = self._line("was never finished") if unfinished else ""
        if self._mark:
            self._place = LogPlace(self._mark, self._offset + len(unfinished))
        self._enter(path, 0)
        return self._part(problem=problem)

    def _open(self) -> str:
        """Open the file of the place, or the first one; return what was lost."""
        files = _files(self._path)
        if self._place.mark:
            for path in files:
                if path.stat().st_size >= self._place.offset:
                    self._enter(path, self._place.offset)
                    self._mark = _mark(self._file)
                    if self._mark == self._place.mark:
                        return ""
            self.close()
            self._place = LogPlace()
            return f"the file that was read is gone, with what was added to it: {self._path}"
        recent = [path for path in files if path.stat().st_mtime >= self._since]
        self._enter(recent[0] if recent else self._path, 0)
        return ""

    def _enter(self, path: Path, offset: int) -> None:
        self.close()
        self._file = os.open(path, os.O_RDONLY)
        self._offset, self._mark, self._skipping = offset, "", False


def _mark(file: int) -> str:
    first = os.pread(file, _PART, 0).partition(b"\n")[0]
    return sha256(first).hexdigest()[:32]


def _files(path: Path) -> list[Path]:
    """Return the rotated files of a log and the file itself, the oldest first; raises OSError."""
    rotated = re.compile(rf"{re.escape(path.name)}[.-][0-9][0-9.-]*\Z")
    found = [each for each in path.parent.iterdir() if rotated.match(each.name)]
    found += [path] if path.exists() else []
    return sorted(found, key=lambda each: each.stat().st_mtime_ns)
