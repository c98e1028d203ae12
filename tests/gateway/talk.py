"""Clients and upstreams that send and receive exact bytes, including invalid ones."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from tests.gateway.kit import DEADLINE, Program, Script, Scripted, wait_for

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
End = Literal["close", "reset", "hold"]
T = TypeVar("T")

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def ask(line: str = "GET /plain", *fields: str, body: bytes = b"", http: str = "1.1") -> bytes:
    """Return the bytes of a request; `line` is method and target, `fields` are `Name: value`."""
    lines = [f"{line} HTTP/{http}", "Host: api.test", *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


@dataclass(frozen=True)
class Answer:
    status: int
    reason: str
    fields: list[tuple[str, str]]
    body: bytes = b""

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name]

    def __getitem__(self, name: str) -> str:
        (value,) = self.all(name)
        return value


class Client:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> Answer:
        """Return the next response head, which may be an interim one."""
        async with asyncio.timeout(DEADLINE):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        _, status, reason = lines[0].split(" ", 2)
        fields = [line.split(": ", 1) for line in lines[1:-2]]
        return Answer(int(status), reason, [(name, value) for name, value in fields])

    async def answer(self, *, bodiless: bool = False) -> Answer:
        head = await self.head()
        if bodiless or head.status < 200 or head.status in (204, 304):
            return head
        async with asyncio.timeout(DEADLINE):
            return replace(head, body=await self._body(head))

    async def final(self) -> Answer:
        while (answer := await self.answer()).status < 200:
            pass
        return answer

    async def chunk(self) -> bytes:
        async with asyncio.timeout(DEADLINE):
            size = int(await self.reader.readuntil(b"\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def rest(self) -> bytes:
        """Return all bytes until the gateway closes; raise ConnectionResetError after an RST."""
        async with asyncio.timeout(DEADLINE):
            return await self.reader.read()

    def cut(self) -> None:
        reset(self.writer)

    async def _body(self, head: Answer) -> bytes:
        if head.all("transfer-encoding"):
            assert head["transfer-encoding"] == "chunked"
            assert not head.all("content-length")
            pieces = []
            while piece := await self.chunk():
                pieces.append(piece)
            return b"".join(pieces)
        if head.all("content-length"):
            return await self.reader.readexactly(int(head["content-length"]))
        return await self.reader.read()


@asynccontextmanager
async def connect(
    to: Program,
    *,
    window: int = 0,
    tls: ssl.SSLContext | None = None,
    place: tuple[str, int] | None = None,
) -> AsyncIterator[Client]:
    """Connect to a gateway.

    Args:
        window: the size of the receive buffer in bytes, for a client that reads slowly.
        place: the address and the port; by default those of the program's first listener.
    """
    connection = socket.socket()
    connection.setblocking(False)
    if window:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    try:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connection, place or ("127.0.0.1", to.port))
        name = None if tls is None else "localhost"
        reader, writer = await asyncio.open_connection(
            sock=connection, limit=window or 2**16, ssl=tls, server_hostname=name
        )
    except BaseException:  # a test may be cancelled here
        connection.close()
        raise
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


async def get(to: Program, line: str = "GET /plain", *fields: str) -> Answer:
    async with connect(to) as client:
        client.send(ask(line, *fields))
        return await client.answer(bodiless=line.startswith("HEAD"))


async def logged(by: Program, request_id: str) -> dict[str, Any]:
    """Return the one log line of a request, which may be delayed."""

    def find() -> list[dict[str, Any]]:
        return [line for line in by.log("request") if line["request_id"] == request_id]

    (line,) = await soon(find)
    return line


async def soon(condition: Callable[[], T]) -> T:
    """Return the value of a condition once it is true; fail at the deadline."""
    found: T = await asyncio.to_thread(wait_for, condition)
    return found


async def settled(value: Callable[[], T]) -> T:
    """Return a value once it has not changed for a third of a second."""
    before, now = None, value()
    while now != before:
        await asyncio.sleep(0.3)
        before, now = now, value()
    return now


def reset(writer: Writer) -> None:
    if writer.transport.is_closing():
        return
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


def reply(data: bytes, then: End = "hold") -> Script:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(data)
        await writer.drain()
        await end(reader, writer, then)

    return script


async def end(reader: Reader, writer: Writer, then: End) -> None:
    if then == "reset":
        reset(writer)
    elif then == "hold":
        await reader.read()
