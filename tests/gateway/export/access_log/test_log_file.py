"""A log that grows and is rotated while it is read: each line is read once, and losses are told."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.export.access_log.log_file import LogFile, LogPart, LogPlace

LIMIT = 64


class Log:
    """A log, who writes to it, and who reads it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "access.log"
        self._clock = 1_000_000_000_000_000_000
        self.reader = self.opened(LogPlace())

    def opened(self, place: LogPlace, since: float = float("inf")) -> LogFile:
        """Return a reader that goes on at a place."""
        self.reader = LogFile(self.path, place, since, LIMIT)
        return self.reader

    def write(self, text: bytes, path: Path | None = None) -> None:
        """Append to a file, a second later."""
        target = path or self.path
        with target.open("ab") as file:
            file.write(text)
        self._clock += 1_000_000_000
        os.utime(target, ns=(self._clock, self._clock))

    def rotate(self, name: str = "access.log.1") -> None:
        """Rename the file."""
        self.path.rename(self.path.with_name(name))

    def read(self) -> tuple[list[bytes], list[str]]:
        """Return all lines up to the end, and what was lost."""
        lines: list[bytes] = []
        problems: list[str] = []
        part = LogPart([], LogPlace(), at_end=False)
        while not part.at_end:
            part = self.reader.read()
            lines += [line for _, line in part.lines]
            problems += [part.problem] if part.problem else []
        self.place = part.place
        return lines, problems


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path)
    yield made
    made.reader.close()


def test_what_is_added_is_read_and_an_unfinished_line_is_waited_for(log: Log) -> None:
    log.write(b"one\ntwo\nthr")
    assert log.read() == ([b"one", b"two"], [])
    assert log.read() == ([], [])
    log.write(b"ee\n")
    assert log.read() == ([b"three"], [])
    assert log.place.offset == 14


def test_lines_have_their_places(log: Log) -> None:
    log.write(b"one\ntwo\n\nthree\n")
    assert log.reader.read().lines == [(0, b"one"), (4, b"two"), (8, b""), (9, b"three")]


def test_more_than_is_read_at_a_time(log: Log) -> None:
    lines = [b"%030d" % number for number in range(10)]
    log.write(b"\n".join(lines) + b"\n")
    assert len(log.reader.read().lines) == 2
    assert log.read() == (lines[2:], [])


@pytest.mark.parametrize("kept", [True, False])
def test_a_rotated_file_is_read_to_its_end_first(log: Log, kept: bool) -> None:
    """Whether the reader goes on, or another one from where it was."""
    log.write(b"one\n")
    assert log.read() == ([b"one"], [])
    log.write(b"two\n")
    log.rotate()
    log.write(b"three\n")
    log.rotate("access.log-20261122")
    log.write(b"four\n")
    if not kept:
        log.reader.close()
        log.opened(log.place)
    assert log.read() == ([b"two", b"three", b"four"], [])


def test_a_new_file_is_not_begun_before_it_is_written_to(log: Log) -> None:
    """Until then, the writer may still add to the old one."""
    log.write(b"one\n")
    assert log.read() == ([b"one"], [])
    log.rotate()
    assert log.read() == ([], [])
    log.write(b"")
    log.write(b"two\n", log.path.with_name("access.log.1"))
    assert log.read() == ([b"two"], [])
    log.write(b"three\n")
    assert log.read() == ([b"three"], [])


def test_a_place_at_the_end_of_a_rotated_file(log: Log) -> None:
    log.write(b"one\n")
    log.read()
    log.rotate()
    log.write(b"tw")
    assert log.read() == ([], [])
    log.opened(log.place)
    log.write(b"o\n")
    assert log.read() == ([b"two"], [])


def test_a_line_that_is_never_finished_is_told(log: Log) -> None:
    log.write(b"one\ntorn")
    assert log.read() == ([b"one"], [])
    log.rotate()
    log.write(b"two\n")
    assert log.read() == (
        [b"two"],
        [f"the line at byte 4 of {log.path} was never finished"],
    )
    log.opened(log.place)
    assert log.read() == ([], [])


def test_a_line_that_is_too_long_is_left_out_and_told(log: Log) -> None:
    log.write(b"one\n" + b"x" * 3 * LIMIT + b"\ntwo\n")
    assert log.read() == ([b"one", b"two"], [f"the line at byte 4 of {log.path} is too long"])
    log.opened(log.place)
    log.write(b"three\n")
    assert log.read() == ([b"three"], [])


def test_a_first_line_that_is_too_long(log: Log) -> None:
    log.write(b"x" * 3 * LIMIT)
    assert log.read() == ([], [f"the line at byte 0 of {log.path} is too long"])
    log.write(b"\ntwo\n")
    assert log.read() == ([b"two"], [])
    log.opened(log.place)
    log.write(b"three\n")
    assert log.read() == ([b"three"], [])


def test_a_file_that_is_gone_is_told_once(log: Log) -> None:
    log.write(b"one\n")
    log.read()
    log.reader.close()
    log.path.unlink()
    log.write(b"two\n")
    log.opened(log.place)
    gone = f"the file that was read is gone, with what was added to it: {log.path}"
    assert log.read() == ([b"two"], [gone])
    log.opened(log.place)
    assert log.read() == ([], [])


def test_a_truncated_file_is_one_that_is_gone_unless_there_is_a_copy(log: Log) -> None:
    log.write(b"one\ntwo\n")
    log.read()
    copy = log.path.with_name("access.log.1")
    log.write(log.path.read_bytes() + b"three\n", copy)
    log.path.write_bytes(b"")
    log.write(b"four\n")
    assert log.read() == ([b"three", b"four"], [])
    copy.unlink()
    log.path.write_bytes(b"")
    assert log.read()[1] == [
        f"the file that was read is gone, with what was added to it: {log.path}"
    ]


@pytest.mark.parametrize("kept", [True, False])
def test_what_was_read_is_not_read_again_where_a_file_is_gone(log: Log, *, kept: bool) -> None:
    """Those that were rotated before it are still there; whether the same reader goes on or not."""
    log.write(b"one\n")
    log.read()
    log.rotate()
    log.write(b"two\n")
    log.read()
    read = log.path.stat().st_mtime + 0.5
    log.path.write_bytes(b"")
    log.write(b"3\n")
    log.rotate("access.log.2")
    log.write(b"4\n")
    if not kept:
        log.reader.close()
        log.opened(log.place, read)
    gone = f"the file that was read is gone, with what was added to it: {log.path}"
    assert log.read() == ([b"3", b"4"], [gone])


def test_nothing_is_there(log: Log) -> None:
    with pytest.raises(FileNotFoundError):
        log.reader.read()
    log.write(b"one\n")
    assert log.read() == ([b"one"], [])


@pytest.mark.parametrize(("since", "found"), [(float("inf"), [b"two"]), (0.0, [b"one", b"two"])])
def test_files_that_were_rotated_before_the_first_line_was_read(
    log: Log, since: float, found: list[bytes]
) -> None:
    log.write(b"one\n")
    log.rotate()
    log.write(b"two\n")
    log.opened(LogPlace(), since)
    assert log.read() == (found, [])
