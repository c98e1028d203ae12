"""Failures of a service, and the resulting responses and log lines."""

import asyncio
import json
import socket

import pytest

from tests.gateway.kit import Program, Scripted, StartUpstream, open_files, rules
from tests.gateway.talk import (
    OK,
    End,
    Reader,
    Writer,
    ask,
    connect,
    end,
    get,
    logged,
    reply,
    reset,
    soon,
)

UNREACHABLE = (502, "upstream_unreachable")
PROTOCOL = (502, "upstream_protocol")
TIMEOUT = (504, "upstream_timeout")


def chunked(*lines: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(lines)


def fields(*lines: bytes) -> bytes:
    return b"\r\n".join((b"HTTP/1.1 200 OK", *lines, b"", b"ok"))


# The bytes of the service, the end of its connection, and the expected error code.
NO_RESPONSE: dict[str, tuple[bytes, End, tuple[int, str]]] = {
    "closes at once": (b"", "close", UNREACHABLE),
    "resets at once": (b"", "reset", UNREACHABLE),
    "closes in the status line": (b"HTTP/1.", "close", PROTOCOL),
    "closes in the head": (b"HTTP/1.1 200 OK\r\nContent-Le", "close", PROTOCOL),
    "resets in the head": (b"HTTP/1.1 200 OK\r\nContent-Le", "reset", PROTOCOL),
    "closes after an interim response": (b"HTTP/1.1 100 Continue\r\n\r\n", "close", PROTOCOL),
    "garbage": (b"\x16\x03\x01 not HTTP at all", "hold", PROTOCOL),
    "garbage and close": (b"220 mail.test ESMTP\r\n", "close", PROTOCOL),
    "a request": (b"GET / HTTP/1.1\r\n\r\n", "hold", PROTOCOL),
    "another protocol's name": (b"ICY 200 OK\r\nContent-Length: 0\r\n\r\n", "hold", PROTOCOL),
    "RTSP": (b"RTSP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "hold", PROTOCOL),
    "ICE": (b"\r\nICE/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "hold", PROTOCOL),
    "a status of two digits": (b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", "hold", PROTOCOL),
    "a status below 100": (b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", "hold", PROTOCOL),
    "a status of zero": (b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n", "hold", PROTOCOL),
    "an unasked switch of protocols": (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        "hold",
        PROTOCOL,
    ),
    "a bare switch of protocols": (b"HTTP/1.1 101 Switching\r\n\r\n", "hold", PROTOCOL),
    "an endless field": (b"HTTP/1.1 200 OK\r\nA: " + b"a" * 300_000, "hold", PROTOCOL),
    "endless fields": (b"HTTP/1.1 200 OK\r\n" + b"A: aaaaaa\r\n" * 30_000, "hold", PROTOCOL),
    "endless interim responses": (
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 8_000,
        "hold",
        PROTOCOL,
    ),
}

BROKEN_BODY: dict[str, tuple[bytes, End, str]] = {
    "short of its length, closed": (fields(b"Content-Length: 3"), "close", "upstream_protocol"),
    "short of its length, reset": (fields(b"Content-Length: 3"), "reset", "upstream_protocol"),
    "closed in a chunk": (chunked(b"5\r\nhel"), "close", "upstream_protocol"),
    "closed after a chunk": (chunked(b"5\r\nhello\r\n"), "close", "upstream_protocol"),
    "closed in the last chunk": (chunked(b"2\r\nok\r\n0\r\n"), "close", "upstream_protocol"),
    "reset in a chunk": (chunked(b"5\r\nhel"), "reset", "upstream_protocol"),
    "garbage for a chunk": (chunked(b"2\r\nok\r\n", b"zz\r\n"), "hold", "upstream_protocol"),
    "a chunk longer than it says": (chunked(b"2\r\nokay\r\n"), "hold", "upstream_protocol"),
    "a chunk past all bounds": (
        chunked(b"2\r\nok\r\n", b"f" * 17 + b"\r\n"),
        "hold",
        "upstream_protocol",
    ),
    "a chunk of negative size": (chunked(b"2\r\nok\r\n", b"-1\r\n"), "hold", "upstream_protocol"),
    "without an end, reset": (b"HTTP/1.1 200 OK\r\n\r\nok", "reset", "upstream_protocol"),
    "stalled in its length": (fields(b"Content-Length: 3"), "hold", "upstream_timeout"),
    "stalled before its first byte": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
        "hold",
        "upstream_timeout",
    ),
    "stalled in a chunk": (chunked(b"5\r\nhel"), "hold", "upstream_timeout"),
    "stalled without an end": (b"HTTP/1.1 200 OK\r\n\r\nok", "hold", "upstream_timeout"),
}

# Short timeouts, used only if the service must be too slow, so that a busy machine does not count
# as a slow service.
STALL = ", timeouts: { between_bytes: 0.2 }"
SHORT = ", timeouts: { connect: 0.2, first_byte: 0.2, between_bytes: 0.2 }"


async def refusal(gateway: Program, line: str = "GET /plain") -> tuple[int, str]:
    """Return status and code of a refusal; check that the client's connection stays usable."""
    async with connect(gateway) as client:
        for _ in range(2):
            client.send(ask(line))
            answer = await client.final()
            assert answer["content-type"] == "application/problem+json"
        problem = json.loads(answer.body)
        assert problem["status"] == answer.status
        assert problem["instance"] == line.split()[1]
        assert "127.0.0.1" not in problem["detail"]  # clients must not learn the service's address
        return answer.status, problem["code"]


def patience(code: str) -> str:
    return STALL if code == "upstream_timeout" else ""


@pytest.mark.parametrize("name", ["closes at once", "resets in the head", "an endless field"])
async def test_a_missing_response_head_gives_the_client_a_problem_detail(
    name: str, standing: Program, through: StartUpstream
) -> None:
    """test_bad_services.py has all cases."""
    data, then, expected = NO_RESPONSE[name]
    await through(reply(data, then))
    assert await refusal(standing) == expected


@pytest.mark.parametrize("http", ["1.1", "1.0"])
@pytest.mark.parametrize(("data", "then", "code"), BROKEN_BODY.values(), ids=BROKEN_BODY)
async def test_a_response_that_is_cut_off_is_aborted_at_the_client(
    data: bytes, then: End, code: str, http: str, standing: Program, through: StartUpstream
) -> None:
    """The abort is an RST, since an orderly end would complete the body for an HTTP/1.0 client."""
    await through(reply(data, then), extra=patience(code))
    async with connect(standing) as client:
        client.send(ask(http=http))
        head = await client.head()
        assert head.status == 200
        with pytest.raises(ConnectionResetError):
            await client.rest()
    line = await logged(standing, head["x-request-id"])
    assert (line["code"], line["aborted"], line["status"]) == (code, True, 200)


@pytest.mark.parametrize(("data", "then", "code"), BROKEN_BODY.values(), ids=BROKEN_BODY)
async def test_a_converted_response_that_breaks_off_is_a_problem_detail(
    data: bytes, then: End, code: str, standing: Program, through: StartUpstream
) -> None:
    await through(
        reply(data.replace(b" OK\r\n", b" OK\r\nContent-Type: application/json\r\n"), then),
        extra=patience(code),
        via=True,
    )
    assert (await refusal(standing, "GET /v1/person"))[1] == code


async def test_a_refused_connection_is_502_unreachable(standing: Program) -> None:
    with socket.socket() as bound:  # no other program can use the port
        bound.bind(("127.0.0.1", 0))
        standing.reload(rules(bound.getsockname()[1]))
        assert await refusal(standing) == UNREACHABLE


async def test_a_service_that_resets_each_connection_is_502(
    standing: Program, through: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        reset(writer)

    await through(script)
    answers = await asyncio.gather(*(get(standing) for _ in range(100)))
    codes = {json.loads(answer.body)["code"] for answer in answers}
    # After some failures, the service may be ejected for a while.
    assert codes <= {"upstream_unreachable", "upstream_unavailable"}


async def test_a_connect_timeout_is_504(standing: Program) -> None:
    """A socket with a full accept queue does not accept further connections."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(address)
        standing.reload(rules(address[1], extra=SHORT))
        assert await refusal(standing) == TIMEOUT
        for each in waiting:
            each.close()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n",
    ],
    ids=["nothing", "part of the status line", "part of the head", "an interim response"],
)
async def test_a_late_response_head_is_504(
    data: bytes, standing: Program, through: StartUpstream
) -> None:
    await through(reply(data), extra=SHORT)
    async with connect(standing) as client:
        client.send(ask())
        answer = await client.final()
        assert (answer.status, json.loads(answer.body)["code"]) == TIMEOUT


@pytest.mark.parametrize(
    "piece",
    [b"5", b"5\r\nhello", b"5\r\nhello\r\n0\r\n"],
    ids=["in the size", "before the end of a chunk", "before the end"],
)
async def test_a_stall_between_chunks_cuts_the_response(
    piece: bytes, standing: Program, through: StartUpstream
) -> None:
    """Bytes without body content do not restart the timeout."""
    seen = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(chunked(b"2\r\nok\r\n"))
        await seen.wait()  # then the following bytes arrive separately
        writer.write(piece)
        await end(reader, writer, "hold")

    await through(script, extra=STALL)
    async with connect(standing) as client:
        client.send(ask())
        head = await client.head()
        assert await client.chunk() == b"ok"
        seen.set()
        with pytest.raises(ConnectionResetError):
            await client.rest()
    assert (await logged(standing, head["x-request-id"]))["code"] == "upstream_timeout"


@pytest.mark.parametrize("line", ["Content-Length: 64000000", "Transfer-Encoding: chunked"])
async def test_a_service_that_does_not_read_the_body_is_504(
    line: str, standing: Program, through: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.Event().wait()

    await through(script, extra=SHORT)
    piece = bytes(1_000_000)
    if line.startswith("T"):
        piece = b"%x\r\n%b\r\n" % (len(piece), piece)
    async with connect(standing) as client:
        client.send(ask("PUT /plain", line))
        for _ in range(64):
            client.send(piece)
        answer = await client.answer()
        assert (answer.status, json.loads(answer.body)["code"]) == TIMEOUT


async def test_a_slow_but_steady_response_is_forwarded(
    standing: Program, through: StartUpstream
) -> None:
    """The timeout applies to the next bytes, not to the whole response."""

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        for byte in b"hello":
            await asyncio.sleep(0.4)
            writer.write(bytes([byte]))

    await through(script, extra=", timeouts: { first_byte: 1.7, between_bytes: 1.7 }")
    assert (await get(standing)).body == b"hello"


async def test_a_target_that_refuses_connections_is_skipped(
    standing: Program, upstream: StartUpstream
) -> None:
    good = await upstream(OK)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        refusing = f'"http://127.0.0.1:{bound.getsockname()[1]}", '
        standing.reload(rules(good.port).replace("targets: [", f"targets: [{refusing}"))
        for line in ("GET /plain", "POST /plain"):
            answers = [await get(standing, line, "Content-Length: 0") for _ in range(4)]
            assert [answer.status for answer in answers] == [200] * 4


async def test_no_connection_was_left_open(standing: Program) -> None:
    """After all tests, only listeners, the log and the event loop's files are open."""

    def held() -> int:
        """Return the number of open files; a file with several descriptors counts once."""
        names = open_files(standing.process.pid)
        several = [name for name in names if name.startswith("socket:")]
        return len(names) - len(several) + len(set(several))

    await soon(lambda: held() < 20)
