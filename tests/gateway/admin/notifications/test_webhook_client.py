"""What a receiver may do, over real sockets; the URL is in no error."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from gateway.admin.notifications import webhook_client
from gateway.admin.notifications.notification import Attempt, Notification
from gateway.admin.notifications.webhook_client import WebhookClient
from gateway.core.operators.notify_rules import EventKind, MessageForm, Webhook

ONE = Notification("evt_1", "replica.lost", 5.0, "b", "It is lost.", "", "", "")


def webhook(url: str) -> Webhook:
    return Webhook("ops", url, MessageForm.STANDARD, None, frozenset(EventKind))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Attempt("")),
        (204, Attempt("")),
        (307, Attempt("it answered 307")),
        (500, Attempt("it answered 500")),
        (410, Attempt("it answered 410", final=True)),
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


async def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_client, "_SECONDS", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def cut(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with WebhookClient() as client:
        for answer, reason in ((silent, "no answer within 0.2 s"), (cut, "cannot be reached: ")):
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            found = await client.send(ONE, webhook(f"http://127.0.0.1:{port}/s3cret"), 7.0)
            assert found.error.startswith(reason)
            server.close()
        for url in (f"http://127.0.0.1:{unused_port()}/s3cret", "http://no.invalid/s3cret"):
            found = await client.send(ONE, webhook(url), 7.0)
            assert found.error.startswith("cannot be reached: ")
            assert "s3cret" not in found.error
