"""What a receiver may do, over real sockets; the URL is in no error."""

import asyncio
import errno
from contextlib import suppress
from typing import NoReturn

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer, unused_port

from gateway.base.notify_rules import EventKind, MessageForm, Webhook
from gateway.findings import webhook_client
from gateway.findings.notification import Attempt, Notification
from gateway.findings.webhook_client import WebhookClient

CORRECT = "correct notify.webhooks.ops.url in the rules"
IT = f"the receiver, or {CORRECT}"
HINT = "; correct notify.webhooks.ops in the rules, or see the log of the receiver"
ONE = Notification("evt_1", "replica.lost", 5.0, "b", "It is lost.", "", "", "")


def webhook(url: str) -> Webhook:
    return Webhook("ops", url, MessageForm.STANDARD, None, frozenset(EventKind))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Attempt("")),
        (204, Attempt("")),
        (307, Attempt(f"it answered 307{HINT}")),
        (429, Attempt("it answered 429")),
        (500, Attempt("it answered 500")),
        (410, Attempt(f"it answered 410{HINT}", final=True)),
    ],
)
async def test_an_answer(status: int, expected: Attempt) -> None:
    seen: list[tuple[str, bytes]] = []

    async def receive(request: web.Request) -> web.Response:
        seen.append((request.headers["webhook-id"], await request.read()))
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_post("/{path:.*}", receive)
    async with TestServer(app) as server, WebhookClient() as client:
        assert await client.send(ONE, webhook(str(server.make_url("/hook"))), 7.0) == expected
    ((identity, body),) = seen
    assert identity == "evt_1"
    assert b"replica.lost" in body


async def test_an_answer_without_end() -> None:
    """A receiver takes no memory by what it announces, nor by fields or a body beyond a bound."""
    sent = 0

    async def serve(repeated: bytes, head: bytes) -> Attempt:
        nonlocal sent
        sent = 0

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            with suppress(ConnectionError):
                writer.write(head)
                while sent < 32 * 1024 * 1024:
                    writer.write(repeated * 4096)
                    sent += len(repeated) * 4096
                    await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, WebhookClient() as client:
            return await client.send(ONE, webhook(f"http://127.0.0.1:{port}/"), 7.0)

    long = Attempt("no answer within 64 KiB")
    for interim in (b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 100 \r\n\r\n"):
        assert await serve(interim, b"") == long
        assert sent < 16 * 1024 * 1024  # what the system keeps for a connection
    assert await serve(b"a: " + b"b" * 1000 + b"\r\n", b"HTTP/1.1 200 OK\r\n") == long
    assert await serve(b"x" * 64, b"HTTP/1.1 200 OK\r\n\r\n") == Attempt("")


async def test_a_connection_is_kept_between_answers() -> None:
    async def receive(request: web.Request) -> web.Response:
        seen.add(request.transport)
        return web.Response()

    seen: set[asyncio.Transport | None] = set()
    app = web.Application()
    app.router.add_post("/", receive)
    async with TestServer(app) as server, WebhookClient() as client:
        for _ in range(10):
            assert await client.send(ONE, webhook(str(server.make_url("/"))), 7.0) == Attempt("")
    assert len(seen) == 1


async def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_client, "_SECONDS", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")  # what is not read would reset the connection
        writer.close()

    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n")
        await writer.drain()
        writer.close()

    async with WebhookClient() as client:
        for scheme, answer, reason in (
            ("http", silent, "no answer within 0.2 s"),
            ("http", cut, "cannot be reached: the connection ended without an answer; see the log"),
            ("http", babble, f"cannot be reached: what is there does not speak HTTP; {CORRECT}"),
            ("https", babble, "cannot be reached: no TLS can be agreed on; is it one that begins"),
        ):
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            found = await client.send(ONE, webhook(f"{scheme}://127.0.0.1:{port}/s3cret"), 7.0)
            assert found.error.startswith(reason)
            assert "s3cret" not in found.error
            server.close()


@pytest.mark.parametrize(
    ("url", "proxy", "reason"),
    [
        ("http://127.0.0.1:{port}/s3cret", "", f"nothing listens at its host and port; start {IT}"),
        ("http://s3cret:s3cret@no.invalid/", "", f"its host has no address; {CORRECT}, or see the"),
        ("http://127.0.0.1:9/s3cret", "http://127.0.0.1:{port}", "the proxy of the environment"),
    ],
    ids=["nobody", "no name", "no proxy"],
)
async def test_nobody_there(
    url: str, proxy: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong and what would be right are there, and the URL is not."""
    port = unused_port()
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if proxy:
        monkeypatch.setenv("http_proxy", proxy.format(port=port))
    async with WebhookClient() as client:
        found = await client.send(ONE, webhook(url.format(port=port)), 7.0)
    assert found.error.startswith(f"cannot be reached: {reason}")
    assert "s3cret" not in found.error


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENETUNREACH, f"network is unreachable; {CORRECT}, or see the network"),
        (0, "the connection ended without an answer"),
    ],
)
async def test_no_way_there(number: int, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def post(*_: object, **__: object) -> NoReturn:
        raise OSError(number, "of /s3cret")

    monkeypatch.setattr(ClientSession, "post", post)
    async with WebhookClient() as client:
        found = await client.send(ONE, webhook("http://192.0.2.1/s3cret"), 7.0)
    assert found.error.startswith(f"cannot be reached: {reason}")
    assert "s3cret" not in found.error
