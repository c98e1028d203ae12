"""Draft: rules that somebody considers, checked as the file would be, without any effect.

A draft may come from whoever can see the page, so it runs no code: the functions that it names have
to be named by the rules in force, whose modules are imported already.
"""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from gateway.base.mistakes import ConfigError, Issue, Location
from gateway.rules.document import Data, read
from gateway.rules.load import check

SOURCE = "draft"
MAX_BYTES = 256 * 1024
"""The size of the largest draft; a larger file is for the command `check`."""


class DraftReport(NamedTuple):
    """What was found in a draft.

    Attributes:
        warnings: what is worth a look, such as a lossy conversion.
        summary: what it has, in a few words; empty if it cannot be used.
    """

    mistakes: list[Issue]
    warnings: list[Issue]
    summary: str = ""


def check_draft(
    content: bytes, in_force: bytes, environment: Mapping[str, str], folder: Path
) -> DraftReport:
    """Return what is wrong with a draft."""
    if len(content) > MAX_BYTES:
        text = f"is larger than {MAX_BYTES // 1024} KiB; check the file with the command `check`"
        return DraftReport([Issue(0, 0, "", text)], [])
    try:
        document = read(content, SOURCE, environment)
        known = {name for _, name in _functions(read(in_force, SOURCE, environment).data, ())}
        unknown = [
            document.issue(
                at,
                f"'{name}' is no function that the rules in force name, and a draft runs no other;"
                " check the file with the command `check`",
            )
            for at, name in _functions(document.data, ())
            if name not in known
        ]
        if unknown:
            return DraftReport(unknown, [])
        rules, warnings = check(content, SOURCE, environment, folder)
    except ConfigError as error:
        return DraftReport([*error.issues], [])
    return DraftReport([], warnings, rules.summary)


def _functions(data: Data, at: Location) -> Iterator[tuple[Location, str]]:
    """Yield the names of functions, as `python_section.py` has them, each with its place."""
    if isinstance(data, dict):
        for key, value in data.items():
            if at[-1:] == ("python",) and key in ("up", "down") and isinstance(value, str):
                yield (*at, key), value
            else:
                yield from _functions(value, (*at, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _functions(value, (*at, index))


SECONDS = 10
"""The longest time that a draft is checked for."""
_MEMORY = 512 * 2**20
# The most mistakes, and the most warnings, that a reader can use.
_MOST_ISSUES = 100


class _Draft(msgspec.Struct, frozen=True):
    content: bytes
    in_force: bytes
    environment: dict[str, str]
    folder: str


async def check_apart(
    content: bytes, in_force: bytes, environment: Mapping[str, str], folder: Path
) -> DraftReport:
    """Return what is wrong with a draft, as `check_draft` does; to take too much is wrong, too."""
    draft = _Draft(content, in_force, dict(environment), str(folder))
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__), stdin=pipe, stdout=pipe, stderr=nothing
        )
    except OSError as error:  # no descriptor, no memory or no process to be had
        return _refused(f"cannot be checked now: {(error.strerror or str(error)).lower()}")
    try:
        async with asyncio.timeout(SECONDS):
            report, _ = await process.communicate(msgspec.msgpack.encode(draft))
    except TimeoutError:
        report = b""
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if report:
        return msgspec.msgpack.decode(report, type=DraftReport)
    return _refused(
        f"takes more than {SECONDS} s or {_MEMORY // 2**20} MiB to check; check the file with the"
        " command `check`"
    )


def _refused(text: str) -> DraftReport:
    return DraftReport([Issue(0, 0, "", text)], [])


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    # One whose gateway has ended is not killed by it, and may wait rather than work.
    signal.alarm(SECONDS)
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what modules of others print is no answer
    draft = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Draft)
    report = check_draft(draft.content, draft.in_force, draft.environment, Path(draft.folder))
    mistakes, warnings = report.mistakes[:_MOST_ISSUES], report.warnings[:_MOST_ISSUES]
    with answer:
        answer.write(msgspec.msgpack.encode(DraftReport(mistakes, warnings, report.summary)))


if __name__ == "__main__":
    _main()
