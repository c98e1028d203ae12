"""Malformed bytes from clients and services and at the admin port cause no traceback."""

import asyncio
import gzip
from random import Random

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.talk import Reader, Writer

BODIES = [
    b"",
    b"none",
    b"a=\xff",
    b'{"percent":5}',
    b'{"name":{"firstName":"A","lastName":"B"}}',
    gzip.compress(b"{}"),
    gzip.compress(b"{}")[:-9],
    b"--x\r\nContent-Disposition: form-data\r\nContent-Encoding: gzip\r\n\r\nz\r\n--x--\r\n",
    b"--x\r\nContent-Type: text/plain; charset=none\r\n\r\nz\r\n--x--\r\n",
    b"--x\r\n\r\n--x--",
]
FIELDS = [
    *(b"Content-Encoding: " + each for each in (b"gzip", b"br", b"deflate", b"zstd", b"\xff")),
    *(b"Content-Encoding: " + each for each in (b"gzip, gzip", b"identity", b"", b"none")),
    *(b"Content-Type: " + each for each in (b"application/json", b"multipart/form-data")),
    b"Content-Type: application/x-www-form-urlencoded",
    b"Content-Type: application/x-www-form-urlencoded; charset=none",
    b"Content-Type: multipart/form-data; boundary=x",
    b"Expect: 100-continue",
    b"Expect: \xff",
    b"Authorization: Bearer \xff",
    b"Cookie: session=\xff.9.x; =;=",
    b"Origin: http://[",
    b"Host: [",
    b"Host: \xff",
    b"Accept: \xff",
    b"Accept: text/html",
    b"Accept-Encoding: gzip;q=\xff",
    b"Connection: upgrade, \xff",
    b"Upgrade: websocket",
    b"Transfer-Encoding: chunked",
    b"traceparent: 00-\xff-1-",
    b"X-Forwarded-For: [::",
    b"Range: bytes=9-1",
    b"\xff: b",
    b" a: b",
]
ADMIN = [
    *("/", "/healthz", "/metrics", "/usage?api=person&version=%ff", "/retire/person/1?within=%00"),
    *("/history/%ff/%00", "/cutovers/person/1", "/fleet/%ff", "/login?next=%0d%0aX:y", "/logout"),
    *(
        "/page/versions?sort=%ff&page=99999999999",
        "/page/versions/person/1?find=%ff",
        "/page/rules",
    ),
    *("/page/versions/person/1/cutover", "/page/callers/person/1?find=%ed%a0%80", "/none", "/%"),
    *("/page/rules?request=%00%ff&at=9", "/notifications/test?webhook=%ff", "//", "*", "http://["),
]
PUBLIC = [
    *("/v1/person", "/v2/person", "/plain?%ff=\xff", "/param?version=%ff", "*", "//", "http://["),
]
METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "\xff", "get"]
STATUS = ["200 OK", "204 None", "304 X", "999 \xff", "101 X", "abc", "200", "422 X", "000 X"]


def odd(chance: Random, head: str, fields: list[bytes]) -> bytes:
    body = chance.choice(BODIES)
    lines = [head.encode("latin-1"), *fields, *chance.sample(FIELDS, chance.randrange(4))]
    if chance.random() < 0.9:
        lines.append(b"Content-Length: %d" % max(0, len(body) + chance.choice([0, 0, 0, 5, -1])))
    sent = b"\r\n".join([*lines, b"", b""]) + body
    if chance.random() < 0.1:
        place = chance.randrange(len(sent))
        sent = sent[:place] + chance.randbytes(4) + sent[place + chance.randrange(5) :]
    return sent[: chance.randrange(len(sent))] if chance.random() < 0.1 else sent


async def send(port: int, data: bytes, *, leaves: bool) -> None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return
    try:
        writer.write(data)
        if leaves:
            writer.transport.abort()
            return
        writer.write_eof()
        async with asyncio.timeout(1):
            await reader.read()
    except (OSError, TimeoutError):
        pass
    finally:
        writer.close()


async def alive(port: int, line: bytes, field: bytes = b"") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line + b" HTTP/1.1\r\nHost: localhost\r\n" + field + b"\r\n")
    async with asyncio.timeout(60):
        line = await reader.readline()
    writer.close()
    return line


async def test_malformed_bytes_cause_no_traceback(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    chance = Random(1)

    async def answer(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(odd(chance, f"HTTP/1.1 {chance.choice(STATUS)}", []))
        await writer.drain()

    service = await upstream(answer)
    program: Program = gateway(rules(service.port, via=True))
    at_once = asyncio.Semaphore(20)

    async def one(port: int, paths: list[str], host: bytes) -> None:
        head = f"{chance.choice(METHODS)} {chance.choice(paths)} HTTP/1.{chance.choice('1110x')}"
        message = odd(chance, head, [host])
        async with at_once:
            await send(port, message, leaves=chance.random() < 0.1)

    await asyncio.gather(
        *(one(program.admin, ADMIN, b"Host: localhost") for _ in range(600)),
        *(one(program.port, PUBLIC, b"Host: api.test") for _ in range(400)),
    )
    assert b" 417 " in await alive(program.admin, b"CONNECT a:1", b"Expect: \xff\r\n")
    assert b" 200 " in await alive(program.admin, b"GET /healthz")
    assert b" 404 " in await alive(program.port, b"GET /none")
    await asyncio.to_thread(stop, program)
    assert b"Traceback" not in program.output.read_bytes()
    assert program.log("request")
    bad = program.log("admin_request_bad")
    assert "BadStatusLine" in {each["reason"] for each in bad}
    assert {each["peer"] for each in bad if "peer" in each} == {"127.0.0.1"}
    assert not [each for each in program.log() if each["level"] == "error"]


def stop(program: Program) -> None:
    program.process.terminate()
    program.process.wait(60)
