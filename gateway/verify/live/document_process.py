"""The gateway's end of the document process: starts it, sends it jobs, and restarts it.

A document never delays a start, a reload or a request. A job during which the process ends is tried
once more in a new process. If that ends as well, the document is not used for an hour, or until a
reload.
"""

import asyncio
import json
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.base.urls import is_http_url, without_secrets
from gateway.observe import log
from gateway.routing.snapshot import Snapshot
from gateway.verify.live.document_jobs import (
    LENGTH,
    LONGEST,
    MOST_MEMORY,
    NOT_DONE,
    OUT_OF_MEMORY,
    Compilation,
    FileCheck,
    Job,
    JobQueue,
    JobResult,
    Reread,
    resolve,
)

# The maximum seconds for one job if the machine is too busy for the process.
_LONGEST_WAIT_FOR_RESULT = 600.0
# The process ends after this many seconds without a job.
_IDLE = 60.0
# The gateway becomes ready after this time even if documents that it needs are not compiled.
_UNREADY = 30.0
# If the process ends soon after its start, the next one starts after a wait that doubles each time.
_YOUNG, _FIRST_WAIT, _LONGEST_WAIT = 5.0, 0.1, 10.0
# The seconds until the next attempt to use a document: that could not be loaded, and that ended the
# process.
_PATIENCE, _LONG_PATIENCE = 20.0, 3600.0
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from gateway.verify.live.document_child import main
main()
"""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(JobResult).decode

Adopt = Callable[[str, bytes], Awaitable[str]]
"""A function that adds a compiled document to the configuration, and returns what is wrong with
it."""


class _EndedError(Exception):
    """The process has ended during a job; the message is the reason.

    Attributes:
        patience: the seconds for which a document that ended the process twice is not used.
    """

    def __init__(self, reason: str, patience: float = _LONG_PATIENCE) -> None:
        super().__init__(reason)
        self.patience = patience


class DocumentProcess(JobQueue):
    """Does jobs in a process that starts when it is needed.

    Args:
        adopt: called for each document that conversions with `additional` need.

    Attributes:
        problems: what is wrong with documents that the configuration names, by location.
    """

    def __init__(self, folder: Path, adopt: Adopt) -> None:
        super().__init__()
        self._folder = folder
        self._adopt = adopt
        self._rules: Snapshot | None = None
        self._refused: dict[str, float] = {}  # the end of the refusal of each document
        self._logged: dict[str, str] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._began = self._wait = 0.0
        self._changed = asyncio.Event()
        self._awaited_until = time.monotonic() + _UNREADY
        self.problems: dict[str, str] = {}

    def unready(self) -> str | None:
        """Return why requests are refused until each document was tried once; else None."""
        apis = () if self._rules is None else self._rules.apis
        lacking = any(one.is_missing for api in apis for one in api.documents.values())
        waits = lacking and time.monotonic() < self._awaited_until
        return "OpenAPI documents are not loaded yet" if waits else None

    def follow(self, rules: Snapshot) -> None:
        """Use the documents of another configuration, and read them again."""
        self._rules = rules
        self._refused.clear()
        self._logged.clear()
        self.problems.clear()
        self.ask(Reread())
        self._changed.set()

    async def run(self) -> None:
        """Do jobs one at a time until this call is cancelled."""
        try:
            while True:
                try:
                    async with asyncio.timeout(_IDLE):
                        job, future = await self.next()
                except TimeoutError:
                    await self._end()
                    self._wait = 0.0
                else:
                    try:
                        resolve(future, await self._result(job))
                    finally:
                        resolve(future, NOT_DONE)  # after an error
        finally:
            await self._end()

    async def read(self) -> None:
        """Ask for the jobs that each configuration needs, until this call is cancelled."""
        jobs: dict[Job, None] = {}
        self._changed.set()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE if jobs else None):
                    await self._changed.wait()
            if self._changed.is_set() and self._rules is not None:
                jobs = _readings(self._rules)
            self._changed.clear()
            for job in [*jobs]:
                result = await self.ask(job)
                if result.shapes:
                    problem = await self._adopt(job.document, result.shapes)
                    if problem:
                        self._report(job.document, problem)
                if self._changed.is_set():  # the result may be that of a former document
                    break
                if result.done:
                    del jobs[job]
            else:
                self._awaited_until = 0.0

    async def _result(self, job: Job) -> JobResult:
        if isinstance(job, Reread) and self._process is None:
            return JobResult()
        if time.monotonic() < self._refused.get(job.document, 0.0):
            return NOT_DONE
        failure = _EndedError("")
        for _ in range(2):
            try:
                result = await self._exchange(job)
            except _EndedError as error:
                failure = error
                await self._end()
                self._log_end(job, error)
            else:
                self._record(job, result)
                return result
        if job.document:
            self._refuse(job.document, f"{job.document}: {failure}", failure.patience)
        return NOT_DONE

    def _log_end(self, job: Job, error: _EndedError) -> None:
        young = time.monotonic() - self._began <= _YOUNG
        self._wait = max(_FIRST_WAIT, min(self._wait * 2, _LONGEST_WAIT) if young else 0.0)
        reason = _shown(job.document, f"{job.document}: {error}" if job.document else str(error))
        log.event("document_process_ended", "warning", reason=reason, restart_in=self._wait)

    async def _exchange(self, job: Job) -> JobResult:
        process = self._process or await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        content = _encode(job)
        try:
            async with asyncio.timeout(_LONGEST_WAIT_FOR_RESULT):
                process.stdin.write(len(content).to_bytes(LENGTH) + content)
                await process.stdin.drain()
                length = int.from_bytes(await process.stdout.readexactly(LENGTH))
                return _decode(await process.stdout.readexactly(length))
        except TimeoutError:
            raise _EndedError(f"takes longer than {_LONGEST_WAIT_FOR_RESULT:g} s") from None
        # RuntimeError: uvloop has noticed the end of the process, and refuses to write.
        except (ConnectionError, RuntimeError, asyncio.IncompleteReadError):
            raise _ended(await process.wait()) from None

    async def _start(self) -> asyncio.subprocess.Process:
        await asyncio.sleep(self._wait)
        self._began = time.monotonic()
        try:
            # In a separate session, so that Ctrl-C in a terminal signals only the gateway.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", _PROGRAM, json.dumps(sys.path), str(self._folder)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:  # no free descriptor, memory or process
            reason = f"the document process cannot be started: {error.strerror or error}"
            raise _EndedError(reason, _PATIENCE) from None
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _record(self, job: Job, result: JobResult) -> None:
        if result.problem and result.done:
            self._report(job.document, result.problem)
        elif result.problem:
            self._refuse(job.document, result.problem, _PATIENCE)
        elif self._refused.pop(job.document, None) is not None:
            self.problems.pop(job.document, None)

    def _refuse(self, location: str, reason: str, patience: float) -> None:
        self._refused[location] = time.monotonic() + patience
        self._report(location, reason)

    def _report(self, location: str, reason: str) -> None:
        """Log a problem once, and show it as a finding if the configuration names the document."""
        shown = _shown(location, reason)
        needed = location in _needed(self._rules)
        if needed or not is_http_url(location):
            self.problems[location] = shown
        if self._logged.get(location) != shown:
            self._logged[location] = shown
            log.event("check_failed", "error" if needed else "info", reason=shown)


def _readings(rules: Snapshot) -> dict[Job, None]:
    """Return the jobs to check the files of a configuration, and to compile what it needs."""
    named = dict.fromkeys(one for api in rules.apis for one in api.schemas.values())
    needed = dict.fromkeys(api.schemas[one] for api in rules.apis for one in api.documents)
    files: list[Job] = [FileCheck(one) for one in named if not is_http_url(one)]
    return dict.fromkeys([*files, *map(Compilation, needed)])


def _ended(status: int) -> _EndedError:
    if status in (OUT_OF_MEMORY, -signal.SIGABRT, -signal.SIGSEGV):
        return _EndedError(
            f"needs more than {MOST_MEMORY // 2**20} MB of memory; remove the operations that"
            " clients do not call, or name a smaller document"
        )
    if status == -signal.SIGPROF:
        return _EndedError(f"takes more than {LONGEST:g} s of processor time; name a smaller one")
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    return _EndedError(f"the document process ended {how}", _PATIENCE)


def _shown(location: str, reason: str) -> str:
    # Some libraries write URLs in lower case.
    hidden = re.compile(re.escape(location), re.IGNORECASE)
    return hidden.sub(lambda _: without_secrets(location), reason) if location else reason


def _needed(rules: Snapshot | None) -> Iterator[str]:
    """Yield the documents without which something that the configuration requires is not done."""
    for api in () if rules is None else rules.apis:
        yield from (api.schemas[version] for version in api.documents)
        for endpoint in api.endpoints:
            for route in endpoint.routes.values():
                if route.check is not None and route.check.percent:
                    yield route.check.schema
                if route.shadow is not None and route.shadow.rule.document is not None:
                    yield route.shadow.rule.document
