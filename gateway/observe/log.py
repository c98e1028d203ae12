"""The log: JSON lines, one line per request; writing never blocks.

Events go to standard output; requests as well, or to a file.

A write to a pipe blocks the whole process if the reader is missing or too slow. Therefore the pipe
is opened a second time in non-blocking mode. Lines that cannot be written yet are buffered in
memory up to a limit; further lines are dropped and counted. Lines are also buffered while a disk is
full, even if only half of a line was written.
"""

import asyncio
import errno
import logging
import os
import select
import socket
import stat
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from select import PIPE_BUF
from typing import Final

import msgspec

from gateway.http.upstream.pool import TargetAddress
from gateway.http.upstream.service import Service
from gateway.usage.delta import CounterDelta, Deliver, Delta

# The maximum bytes per write to a file; such a write never blocks for long.
_FILE = 64 * 1024
# The maximum bytes of buffered lines.
_MOST_WAITING = 1024 * 1024
# Additional buffer for events only. Otherwise the many request lines would displace the line that
# reports the number of dropped lines.
_RESERVED = 64 * 1024
# The maximum seconds to write the buffered lines when the process exits.
_AT_END = 0.5
# Seconds between two reports of dropped lines, and between two attempts to write to a full disk.
_INTERVAL = 1.0
# The maximum seconds until the log line of a request is written.
_PATIENCE = 0.05
_FULL = errno.ENOSPC, errno.EDQUOT


class LogOutput:
    """Writes lines to a descriptor, which may be a file, a pipe, a terminal or a socket.

    Attributes:
        most: the maximum size of one write, in bytes. A pipe never interleaves a write of that size
            with the writes of other processes.
        report: called with the number of dropped lines by kind.
    """

    def __init__(self, descriptor: int) -> None:
        mode = os.fstat(descriptor).st_mode
        self._regular = stat.S_ISREG(mode)
        self.most = _FILE if self._regular else PIPE_BUF
        self.report: Callable[[Counter[str]], None] = _nowhere
        self._given = self._descriptor = descriptor
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(mode) else None
        if stat.S_ISFIFO(mode) or os.isatty(descriptor):
            # O_NONBLOCK on the inherited descriptor would affect the other processes that share it.
            with suppress(OSError):  # the pipe has no reader, so writes fail without blocking
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
                self._descriptor = os.open(f"/proc/self/fd/{descriptor}", flags)
        self._buffer = bytearray()
        self._lines = 0  # in the buffer
        self._due: asyncio.TimerHandle | None = None
        self._waiting: deque[tuple[bytes, str]] = deque()
        self._size = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dropped: Counter[str] = Counter()

    def write_soon(self, line: msgspec.Struct) -> None:
        """Write the line of a request within _PATIENCE seconds, together with other lines.

        Under load, a separate system call for each line would cost as much as the response.
        """
        buffer = self._buffer
        begin = len(buffer)
        _encode_into(line, buffer, begin)
        buffer += b"\n"
        if len(buffer) > self.most:
            text = fitting(line, bytes(buffer[begin:]), self.most)
            del buffer[begin:]
            self.flush()
            self._buffer += text
        self._lines += 1
        if self._due is None:  # only one timer, or each full batch would leave one behind
            self._due = asyncio.get_running_loop().call_later(_PATIENCE, self._flush_in_time)

    def _flush_in_time(self) -> None:
        self._due = None
        self.flush()

    def flush(self) -> None:
        text, lines = bytes(self._buffer), self._lines
        self._buffer, self._lines = bytearray(), 0
        if lines:
            self.write(text, "request", lines)

    def write(self, text: bytes, kind: str, lines: int) -> None:
        """`text` has at most `most` bytes or is a single line; `kind` is "request" or "event"."""
        rest = text if self._waiting else self._send(text, kind)
        if not rest:
            return
        most = _MOST_WAITING + (_RESERVED if kind == "event" else 0)
        if self._size + len(rest) > most:
            self._drop(kind, lines)
            return
        self._waiting.append((rest, kind))
        self._size += len(rest)
        self._watch()

    def finish(self) -> None:
        """Write the buffered lines within _AT_END seconds. It must be the last call."""
        end = time.monotonic() + _AT_END
        writable = select.poll()
        writable.register(self._descriptor, select.POLLOUT)
        self._flush()
        while self._waiting and not self._regular and (left := end - time.monotonic()) > 0:
            writable.poll(left * 1000)
            self._flush()
        if self._socket is not None:
            self._socket.close()
        elif self._descriptor != self._given:
            os.close(self._descriptor)

    def _send(self, text: bytes, kind: str) -> bytes:
        """Write bytes; return the bytes to retry later. Drop the lines after a permanent error."""
        try:
            if self._socket is None:
                return text[os.write(self._descriptor, text) :]
            return text[self._socket.send(text, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            return text
        except OSError as error:
            if self._regular and error.errno in _FULL:
                return text
            # The pipe has no reader any more, or writing failed. Requests must not fail for this
            # reason.
            self._drop(kind, text.count(b"\n"))
            return b""

    def _flush(self) -> None:
        while self._waiting:
            text, kind = self._waiting.popleft()
            self._size -= len(text)
            rest = self._send(text, kind)
            if rest:
                self._waiting.appendleft((rest, kind))
                self._size += len(rest)
                return
        if self._loop is not None and not self._regular:
            self._loop.remove_writer(self._descriptor)
        self._loop = None

    def _watch(self) -> None:
        if self._loop is None:
            with suppress(RuntimeError):  # without a running loop, the next call tries again
                self._loop = asyncio.get_running_loop()
                if self._regular:  # no event signals that a disk has room again
                    self._loop.call_later(_INTERVAL, self._try_again)
                else:
                    self._loop.add_writer(self._descriptor, self._flush)

    def _try_again(self) -> None:
        self._loop = None
        self._flush()
        if self._waiting:
            self._watch()

    def _drop(self, kind: str, lines: int) -> None:
        if not self._dropped:
            with suppress(RuntimeError):
                asyncio.get_running_loop().call_later(_INTERVAL, self._report_dropped)
        self._dropped[kind] += lines

    def _report_dropped(self) -> None:
        # The report itself may be dropped. It is not reported again, to avoid an endless loop.
        self.report(Counter(self._dropped))
        self._dropped.clear()


class LogFile(LogOutput):
    """Appends the lines of requests to a file; raises OSError if it cannot be opened.

    If the file is renamed or removed, a new one is begun within a second, without losing a line.
    """

    def __init__(self, path: str) -> None:
        super().__init__(_open(path))
        self._path = Path(path)
        self._looked = time.monotonic()

    def flush(self) -> None:
        if self._regular and not self._waiting and time.monotonic() > self._looked + _INTERVAL:
            self._looked = time.monotonic()
            with suppress(OSError):  # without a new file, the renamed one stays in use
                self._follow()
        super().flush()

    def _follow(self) -> None:
        with suppress(FileNotFoundError):
            if os.path.samestat(self._path.stat(), os.fstat(self._descriptor)):
                return
        fresh = _open(str(self._path))
        os.dup2(fresh, self._descriptor, inheritable=False)
        os.close(fresh)


def _open(path: str) -> int:
    # Without O_NONBLOCK, opening a FIFO waits for a process that reads it.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return os.open(path, flags, 0o640)


def _nowhere(_: Counter[str]) -> None:
    pass


_encoder = msgspec.json.Encoder()
_encode: Final = _encoder.encode
_encode_into: Final = _encoder.encode_into


def event(name: str, level: str = "info", **fields: object) -> None:
    line = {"time": now(), "level": level, "event": name, "program": "gateway", **fields}
    to = output()
    to.write(fitting(line, _encode(line) + b"\n", to.most), "event", 1)


def health(service: Service, address: TargetAddress, failure: str | None) -> None:
    """Log that health checks found an address down, with the failure, or up again."""
    about = {"service": service.name, "target": address.label}
    if failure is None:
        event("target_up", **about)
    else:
        event("target_down", **about, reason=failure)


def look_up(host: str, failure: str | None) -> None:
    """Log that DNS look-ups of a host name start to fail, with the reason, or succeed again."""
    if failure is None:
        event("host_resolved", host=host)
    else:
        reason = f"{failure}; addresses of earlier look-ups stay in use"
        event("host_unresolved", "warning", host=host, reason=reason)


class _JsonLines(logging.Handler):
    """A logging handler that writes the records of Python loggers as JSON lines."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, object] = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        event("log", record.levelname.lower(), **fields)


def _log_unraisable(error: "sys.UnraisableHookArgs") -> None:
    if isinstance(error.exc_value, UnicodeDecodeError) and isinstance(error.object, bytes):
        return  # a server name outside ASCII: `ssl` fails the handshake, which is logged
    what = error.err_msg or "Exception ignored in"
    cause = error.exc_value and (error.exc_type, error.exc_value, error.exc_traceback)
    logging.getLogger(__name__).error("%s: %r", what, error.object, exc_info=cause)


def configure() -> None:
    sys.unraisablehook = _log_unraisable
    logging.basicConfig(level=logging.INFO, handlers=[_JsonLines()], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)  # at lower levels it logs each plugin


def count_dropped(deliver: Deliver) -> None:
    def report(dropped: Counter[str]) -> None:
        counts = [CounterDelta("log_dropped", (kind,), lines) for kind, lines in dropped.items()]
        deliver(Delta(time.time(), counts=counts))
        event("log_dropped", "error", lines=dropped.total())

    output().report = report


def flush() -> None:
    for one in (output(), *_files.values()):
        one.flush()


def finish() -> None:
    for one in (output(), *_files.values()):
        one.finish()


_files: dict[str, LogFile] = {}


def request_output(path: str | None) -> LogOutput:
    """Return where the lines of requests go: a file, or standard output without a path.

    They also go to standard output if the file cannot be opened, which is logged.
    """
    if path and path not in _files:
        try:
            _files[path] = LogFile(path)
        except OSError as error:
            reason = f"{error.strerror}; requests are logged on standard output until a reload"
            event("access_log_unopened", "error", file=path, reason=reason)
            return output()
        _files[path].report = output().report
    return _files[path] if path else output()


@cache
def output() -> LogOutput:
    return LogOutput(sys.stdout.fileno())


def fitting(line: object, text: bytes, most: int) -> bytes:
    """Return an encoded line, with its longest fields shortened if it exceeds `most` bytes.

    A pipe could interleave a longer write with the lines of other workers.
    """
    if len(text) <= most:
        return text
    fields: dict[str, object] = msgspec.to_builtins(line)
    while len(text) > most:
        name = max(fields, key=lambda name: len(str(fields[name])))
        value = str(fields[name])
        over = len(text) - most + len("\u2026".encode())
        half = max(0, len(value) - over) // 2
        fields[name] = f"{value[:half]}\u2026{value[len(value) - half :]}"
        if len(str(fields[name])) >= len(value):
            break  # no event has thousands of fields
        text = _encode(fields) + b"\n"
    return text


def now() -> str:
    return _text(int(time.time() * 1000))


@lru_cache(maxsize=2)
def _text(milliseconds: int) -> str:
    second, rest = divmod(milliseconds, 1000)
    return f"{_second(second)}.{rest:03d}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
