"""A draft of rules, checked in a process of its own, within bounds of time and memory.

A few kilobytes of rules can have millions of routes, as each endpoint has one for each version, or
hours of work. Beside the requests, that would take the time and the memory that they need.
"""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.base.mistakes import Issue
from gateway.rules.draft import DraftReport, check_draft

SECONDS = 10
"""The longest time that a draft is checked for."""
_MEMORY = 512 * 2**20
# So many mistakes, and so many warnings, are of use to whoever reads them.
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
