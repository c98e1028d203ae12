"""Drafts: configurations that are checked like the file but never take effect.

Anyone who can read the page may send a draft, so a draft must not run new code. It may name only
functions that the configuration in force also names.
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

from gateway.base.files import system_reason
from gateway.base.mistakes import ConfigError, Issue, Location
from gateway.rules.document import Data, read
from gateway.rules.load import check

SOURCE = "draft"
MAX_BYTES = 256 * 1024
"""The maximum size of a draft. Larger files can be checked only with the command `check`."""


class DraftReport(NamedTuple):
    mistakes: list[Issue]
    warnings: list[Issue]
    summary: str = ""


def check_draft(
    content: bytes, in_force: bytes, environment: Mapping[str, str], folder: Path
) -> DraftReport:
    if len(content) > MAX_BYTES:
        text = f"is larger than {MAX_BYTES // 1024} KiB; check the file with the command `check`"
        return DraftReport([Issue(0, 0, "", text)], [])
    try:
        document = read(content, SOURCE, environment)
        known = {name for _, name in _functions(read(in_force, SOURCE, environment).data, ())}
        unknown = [
            document.issue(
                at,
                f"'{name}' is not a function of the configuration in force, and a draft runs no "
                f"other functions; check the file with the command `check`",
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
"""The maximum duration of a check, in seconds."""
_MEMORY = 512 * 2**20
_MOST_ISSUES = 100


class _Draft(msgspec.Struct, frozen=True):
    content: bytes
    in_force: bytes
    environment: dict[str, str]
    folder: str


async def check_apart(
    content: bytes, in_force: bytes, environment: Mapping[str, str], folder: Path
) -> DraftReport:
    """Run `check_draft` in a child process with limits of time and memory; return its result."""
    draft = _Draft(content, in_force, dict(environment), str(folder))
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__), stdin=pipe, stdout=pipe, stderr=nothing
        )
    except OSError as error:  # no descriptor, memory or process is available
        return _refused(f"cannot be checked now: {system_reason(error)}")
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
    with suppress(ValueError):  # macOS refuses a limit on the address space
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    # The alarm ends this process even if the gateway has ended.
    signal.alarm(SECONDS)
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps output of modules out of the report
    draft = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Draft)
    report = check_draft(draft.content, draft.in_force, draft.environment, Path(draft.folder))
    mistakes, warnings = report.mistakes[:_MOST_ISSUES], report.warnings[:_MOST_ISSUES]
    with answer:
        answer.write(msgspec.msgpack.encode(DraftReport(mistakes, warnings, report.summary)))


if __name__ == "__main__":
    _main()
