"""The document process: reads, compiles and uses OpenAPI documents for a running gateway.

It has its own memory, and a low priority. It reads jobs from its standard input, and exits when
the gateway closes it.
"""

import asyncio
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import IO

import msgspec

from gateway.verify.live.contract import Contract
from gateway.verify.live.document_jobs import (
    LENGTH,
    LONGEST,
    MOST_MEMORY,
    OUT_OF_MEMORY,
    Compilation,
    FileCheck,
    Job,
    JobResult,
    MessageCheck,
    OperationList,
    Reread,
)
from gateway.verify.openapi.document_source import fetch_texts, read
from gateway.verify.openapi.openapi import DocumentError
from gateway.verify.openapi.shapes import compile_document
from gateway.verify.schema_files import check_file

# Low, but high enough that the process makes progress while many others are busy.
_PRIORITY = 5
_decode = msgspec.msgpack.Decoder(Job).decode
_encode = msgspec.msgpack.Encoder().encode


class DocumentWork:
    """Does jobs. Relative locations of documents are relative to `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contracts: dict[str, tuple[bytes, Contract]] = {}
        self._former: dict[str, tuple[bytes, Contract]] = {}

    def result(self, job: Job) -> JobResult:
        try:
            return self._result(job)
        except DocumentError as error:
            return JobResult(problem=str(error), done=False)
        except MemoryError:
            raise
        except Exception as error:  # an error in one message or schema is only reported
            return JobResult(problem=f"{job.document}: {type(error).__name__}: {error}")

    def _result(self, job: Job) -> JobResult:
        match job:
            case MessageCheck():
                return JobResult(self._contract(job.document).violations(job))
            case FileCheck():
                try:
                    check_file(self._folder, job.document)
                except ValueError as error:
                    raise DocumentError(str(error)) from None
            case Compilation():
                return JobResult(shapes=asyncio.run(compile_document(job.document, self._folder)))
            case OperationList():
                contract = self._contract(job.document)
                return JobResult(operations=contract.operations(job.endpoints, job.version))
            case Reread():
                self._former, self._contracts = self._contracts, {}
        return JobResult()

    def _contract(self, location: str) -> Contract:
        known = self._contracts.get(location)
        if known is None:
            text = asyncio.run(fetch_texts([location], self._folder))[location]
            known, digest = self._former.pop(location, None), sha256(text).digest()
            if known is None or known[0] != digest:
                known = digest, Contract(read(text, location))
            self._contracts[location] = known
        return known[1]


def main() -> None:
    os.nice(_PRIORITY)
    Thread(target=_watch, args=[os.getppid()], daemon=True).start()
    _limit_memory()
    jobs, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    work = DocumentWork(Path(sys.argv[1]))
    with suppress(BrokenPipeError):
        while content := _read(jobs):
            try:
                # SIGPROF ends the process after this much processor time, also in code that holds
                # the interpreter lock.
                signal.setitimer(signal.ITIMER_PROF, LONGEST)
                result = _encode(work.result(_decode(content)))
                signal.setitimer(signal.ITIMER_PROF, 0)
            except MemoryError:
                os._exit(OUT_OF_MEMORY)
            results.write(len(result).to_bytes(LENGTH) + result)
            results.flush()


def _read(jobs: IO[bytes]) -> bytes:
    return jobs.read(int.from_bytes(jobs.read(LENGTH)))


def _limit_memory() -> None:
    with suppress(ValueError, OSError):  # macOS does not limit the data of a process
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    with suppress(OSError):  # if Linux has no free memory, this process ends, not the gateway
        Path("/proc/self/oom_score_adj").write_text("1000")


def _watch(parent: int) -> None:
    """Exit if the gateway has ended during a long job, or if this process is too large."""
    while os.getppid() == parent:
        # On Linux, the memory of the gateway would count too, since a new program inherits it.
        is_measured = sys.platform == "darwin"
        if is_measured and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MOST_MEMORY:
            os._exit(OUT_OF_MEMORY)
        time.sleep(1)
    os._exit(0)
