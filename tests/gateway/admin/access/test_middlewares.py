"""The middlewares over real sockets: host names, origins, bodies, and problem details."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp.http_exceptions import BadStatusLine
from aiohttp.test_utils import make_mocked_request
from aiohttp.web_protocol import RequestPayloadError

from gateway.admin.access import middlewares
from gateway.admin.access.connections import AdminLogger
from gateway.admin.access.middlewares import error_response
from gateway.admin.access.rights import AdminProblemError
from gateway.admin.admin_app import start_admin
from gateway.findings.operator import Operator
from gateway.observe import log
from gateway.store.state import StateBusyError, StateError, StateUnsureError, UnknownReplicaError
from tests.gateway.operating import PARTS

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LOCAL = "Host: 127.0.0.1"
FORM = "Content-Type: application/x-www-form-urlencoded"


@asynccontextmanager
async def serving(operator: Operator) -> AsyncIterator[int]:
    runner = await start_admin(operator, PARTS, ["admin.example.com"])
    assert runner.server is not None
    server = await asyncio.get_running_loop().create_server(runner.server, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await runner.cleanup()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def ask(port: int, line: str, *fields: str, body: bytes = b"") -> list[bytes]:
    async with connected(port) as (reader, writer):
        head = "\r\n".join((line, *fields, "Connection: close", "", ""))
        writer.write(head.encode("latin-1") + body)
        async with asyncio.timeout(60):
            return (await reader.readuntil(b"\r\n\r\n") + await reader.read(5000)).split(b"\r\n")


async def status(port: int, line: str, *fields: str, body: bytes = b"") -> int:
    return int((await ask(port, f"{line} HTTP/1.1", *fields, body=body))[0].split()[1])


async def test_a_request_with_an_unknown_public_host_name_is_refused(operator: Operator) -> None:
    own = ["127.0.0.1:8090", "localhost", "[::1]:8090", "gateway:8090", "a.localhost"]
    own += ["admin.example.com", "ADMIN.example.com:1"]
    foreign = ["evil.example", "evil.example:8090", "127.0.0.1.evil.example", "example.com"]
    table = dict.fromkeys(own, 200) | dict.fromkeys(foreign, 421) | {"[::1": 400}
    async with serving(operator) as port:
        for host, expected in table.items():
            assert await status(port, "GET /overrides", f"Host: {host}") == expected, host
            assert await status(port, "GET /readyz", f"Host: {host}") == 200


async def test_a_request_from_a_page_of_another_site_is_refused(operator: Operator) -> None:
    link = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]
    table = [
        (["Origin: http://evil.example"], 403),
        (["Origin: null"], 403),
        (["Origin: http://127.0.0.1"], 200),
        (["Origin: http://127.0.0.1:9"], 403),
        (["Origin: http://["], 403),
        (["Sec-Fetch-Site: cross-site"], 403),
        (["Sec-Fetch-Site: same-site"], 403),
        (["Sec-Fetch-Site: same-origin"], 200),
        (["Sec-Fetch-Site: none"], 200),
        (link, 200),  # a link in a chat message
    ]
    async with serving(operator) as port:
        for fields, expected in table:
            lines = await ask(port, "GET /overrides HTTP/1.1", LOCAL, *fields)
            assert int(lines[0].split()[1]) == expected, fields
            if expected == 403:
                assert json.loads(lines[-1])["code"] == "foreign_origin"
            put = ("PUT /brownouts/person/2", LOCAL, *fields, "Content-Length: 0")
            assert await status(port, *put) == 403, fields


async def test_a_body_that_does_not_arrive_in_time_is_refused(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middlewares, "REQUEST_SECONDS", 0.1)
    async with serving(operator) as port:
        put = ("PUT /brownouts/person/2", LOCAL, "Content-Length: 9")
        assert await status(port, *put, body=b"half") == 408


async def test_an_unreadable_or_too_large_body_is_refused(operator: Operator) -> None:
    table: list[tuple[str, list[str], bytes, int]] = [
        ("/page/rules", [f"{FORM}; charset=none"], b"a=b", 400),
        ("/page/rules", [FORM], b"a=\xff", 400),
        ("/page/rules", ["Content-Type: multipart/form-data; boundary=x"], b"a", 400),
        ("/page/rules", ["Content-Type: multipart/form-data"], b"a", 400),
        ("/page/rules", ["Content-Encoding: gzip"], b"none", 400),
        ("/page/rules", [FORM], b"a=" + b"b" * 2**20, 413),
        ("/page/rules", [FORM], b"draft=" + b"b" * 20_000, 422),  # read, but invalid
        ("/login", [FORM], b"a=" + b"b" * 16_382, 403),
        ("/login", [FORM], b"a=" + b"b" * 16_383, 413),
        ("/login", [FORM, "Transfer-Encoding: chunked"], b"", 413),
    ]
    async with serving(operator) as port:
        for path, fields, body, expected in table:
            length = [f"Content-Length: {len(body)}"] if body else []
            sent = (f"POST {path}", LOCAL, *length, *fields)
            assert await status(port, *sent, body=body) == expected, fields


@pytest.mark.usefixtures("forked_processes")
async def test_a_fifth_large_body_replaces_the_oldest_one(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middlewares, "REQUEST_SECONDS", 60.0)
    head = f"POST /page/rules HTTP/1.1\r\n{LOCAL}\r\n{FORM}\r\nContent-Length:"

    def replaced() -> int:
        return sum(each.count for _, each in operator.totals.counted("admin_bounds"))

    async with serving(operator) as port, AsyncExitStack() as stack:
        held = [await stack.enter_async_context(connected(port)) for _ in range(6)]
        for _, writer in held:
            writer.write(f"{head} 500000\r\n\r\n".encode() + b"a" * 100_000)
            await asyncio.sleep(0.05)  # the bodies must arrive in this order
        for _, writer in [await stack.enter_async_context(connected(port)) for _ in range(20)]:
            writer.write(f"{head} 500\r\n\r\nhalf".encode())  # small bodies do not count
        for reader, _ in held[:2]:
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        for _, writer in held[2:]:
            writer.write(b"a" * 400_000)
        for reader, _ in held[2:]:
            async with asyncio.timeout(60):
                assert (await reader.readline()).split()[1] == b"422"
        assert replaced() == 2


async def test_an_unknown_expectation_is_refused(operator: Operator) -> None:
    methods = {"/overrides": "PUT", "/unknown": "PUT", "/a%0Ab": "PUT", "*": "OPTIONS"}
    methods |= {"a:1": "CONNECT"}
    values = ["200-ok", "\xff", "100-continue, 200-ok", "100-continue\xff"]
    async with serving(operator) as port:
        for (target, method), value in itertools.product(methods.items(), values):
            fields = (LOCAL, "Content-Length: 1", f"Expect: {value}")
            lines = await ask(port, f"{method} {target} HTTP/1.1", *fields)
            assert lines[0] == b"HTTP/1.1 417 Expectation Failed", target
            assert b"Content-Type: application/problem+json" in lines
            assert (
                json.loads(lines[-1])["detail"]
                == "The only supported value of Expect is 100-continue."
            )


async def test_known_expectations_are_accepted_and_unknown_paths_get_a_problem_detail(
    operator: Operator,
) -> None:
    table = {
        ("GET /overrides HTTP/1.1", "Expect: 100-Continue"): b"HTTP/1.1 100 Continue",
        ("GET /overrides HTTP/1.0", "Expect: 200-ok"): b"HTTP/1.0 200 OK",
        ("PUT /unknown HTTP/1.1", LOCAL): b"HTTP/1.1 404 Not Found",
        ("CONNECT a:1 HTTP/1.1", LOCAL): b"HTTP/1.1 404 Not Found",
        ("POST /usage HTTP/1.1", LOCAL): b"HTTP/1.1 405 Method Not Allowed",
    }
    async with serving(operator) as port:
        for (line, field), expected in table.items():
            lines = await ask(port, line, *{LOCAL: 0, field: 0})
            assert lines[0] == expected
            assert (b"Allow: GET, HEAD" in lines) is (b" 405 " in expected)


@pytest.mark.parametrize(
    ("error", "expected", "code", "detail"),
    [
        (AdminProblemError(429, "too_many_tries", "wait"), 429, "too_many_tries", "wait"),
        (UnknownReplicaError("no replica is called 'x'"), 404, "not_found", "no replica"),
        (StateError("the disk is full"), 503, "state_unavailable", "full; nothing was changed"),
        (StateUnsureError("gone"), 503, "state_unavailable", "gone; it may have been changed"),
        (StateBusyError("2 read"), 503, "state_busy", "2 read; it may have been changed"),
        (TimeoutError(), 504, "worker_timeout", "A worker has not confirmed the change in time"),
    ],
)
def test_an_error_of_a_handler_becomes_a_problem_detail(
    error: Exception, expected: int, code: str, detail: str
) -> None:
    answer = error_response(make_mocked_request("PUT", "/here"), error)
    assert (answer.status, answer.content_type) == (expected, "application/problem+json")
    document: dict[str, Any] = json.loads(answer.text or "")
    assert (document["status"], document["code"]) == (expected, code)
    assert document["instance"] == "/here"
    assert detail in document["detail"]
    assert answer.headers.get("Retry-After") == ("10" if code == "state_busy" else None)
    read = error_response(make_mocked_request("GET", "/here"), error)
    assert "changed" not in (read.text or "")


@pytest.mark.parametrize(
    ("error", "args", "event"),
    [
        (
            BadStatusLine("GET /?token=secret"),
            ("192.0.2.7",),
            {"peer": "192.0.2.7", "reason": "BadStatusLine"},
        ),
        (RequestPayloadError("secret"), (), {"reason": "RequestPayloadError"}),
        (ConnectionResetError(), (), None),
        (KeyError("ours"), (), None),
    ],
)
def test_only_an_error_of_the_gateway_is_logged_with_a_traceback(
    error: Exception,
    args: tuple[str, ...],
    event: dict[str, str] | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = list[dict[str, object]]()
    monkeypatch.setattr(log, "event", lambda *_, **fields: events.append(fields))
    AdminLogger().exception("from %s" if args else "failed", *args, exc_info=error)
    assert events == ([] if event is None else [event])
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == (
        [error] if isinstance(error, KeyError) else []
    )
