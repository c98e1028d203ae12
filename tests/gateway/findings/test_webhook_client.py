"""The webhook client over real sockets: responses, signatures, and errors without the URL."""

import asyncio
import errno
import json
from base64 import b64decode
from contextlib import suppress
from typing import NoReturn

import msgspec
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer, unused_port

from gateway.base.notify import Webhook
from gateway.findings import webhook_client
from gateway.findings.notifications import Attempt, Notification
from gateway.findings.webhook_client import message, post, signature, webhook_session

CORRECT = "correct notify.webhooks.ops.url in the configuration"
IT = f"the receiver, or {CORRECT}"
HINT = "; correct notify.webhooks.ops in the configuration, or see the receiver's log"
ONE = Notification("evt_1", "replica.lost", 5.0, "b", "It is lost.", "", "", "")


KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
RAW = b64decode(KEY.removeprefix("whsec_"))
LINK = "https://page/"
LINKED = Notification(
    "evt_1", "replica.lost", 5.0, "b", "It & <https://evil> are *lost*.", "person", "1", LINK
)


async def send(url: str) -> Attempt:
    async with webhook_session() as session:
        return await post(session, ONE, "ops", Webhook(url=url), 7.0)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Attempt("")),
        (204, Attempt("")),
        (307, Attempt(f"it responded with status 307{HINT}")),
        (429, Attempt("it responded with status 429")),
        (500, Attempt("it responded with status 500")),
        (410, Attempt(f"it responded with status 410{HINT}", final=True)),
    ],
)
async def test_a_success_ends_the_delivery_and_410_ends_its_retries(
    status: int, expected: Attempt
) -> None:
    seen: list[tuple[str, bytes]] = []

    async def receive(request: web.Request) -> web.Response:
        seen.append((request.headers["webhook-id"], await request.read()))
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_post("/{path:.*}", receive)
    async with TestServer(app) as server:
        assert await send(str(server.make_url("/hook"))) == expected
    ((identity, body),) = seen
    assert identity == "evt_1"
    assert b"replica.lost" in body


async def test_an_endless_response_head_is_cut_after_64_kib() -> None:
    """A receiver cannot fill memory with interim responses, header fields or a body."""
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
        async with server:
            return await send(f"http://127.0.0.1:{port}/")

    long = Attempt("no response within 64 KiB")
    for interim in (b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 100 \r\n\r\n"):
        assert await serve(interim, b"") == long
        assert sent < 16 * 1024 * 1024  # the size of the system's socket buffers
    assert await serve(b"a: " + b"b" * 1000 + b"\r\n", b"HTTP/1.1 200 OK\r\n") == long
    assert await serve(b"x" * 64, b"HTTP/1.1 200 OK\r\n\r\n") == Attempt("")


async def test_messages_share_a_connection() -> None:
    async def receive(request: web.Request) -> web.Response:
        seen.add(request.transport)
        return web.Response()

    seen: set[asyncio.Transport | None] = set()
    app = web.Application()
    app.router.add_post("/", receive)
    async with TestServer(app) as server, webhook_session() as session:
        webhook = Webhook(url=str(server.make_url("/")))
        for _ in range(10):
            assert await post(session, ONE, "ops", webhook, 7.0) == Attempt("")
    assert len(seen) == 1


async def test_a_broken_response_is_reported_without_the_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_client, "_SECONDS", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")  # unread bytes would reset the connection
        writer.close()

    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n")
        await writer.drain()
        writer.close()

    for scheme, answer, reason in (
        ("http", silent, "no response within 0.2 s"),
        (
            "http",
            cut,
            "cannot be reached: the connection ended without a response; see the receiver's log",
        ),
        ("http", babble, f"cannot be reached: the server there does not use HTTP; {CORRECT}"),
        ("https", babble, "cannot be reached: TLS failed; if the URL has to begin"),
    ):
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        found = await send(f"{scheme}://127.0.0.1:{port}/s3cret")
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
async def test_an_unreachable_webhook_is_reported_with_the_remedy(
    url: str, proxy: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = unused_port()
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if proxy:
        monkeypatch.setenv("http_proxy", proxy.format(port=port))
    found = await send(url.format(port=port))
    assert found.error.startswith(f"cannot be reached: {reason}")
    assert "s3cret" not in found.error


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENETUNREACH, f"network is unreachable; {CORRECT}, or see the network"),
        (0, "the connection ended without a response"),
    ],
)
async def test_a_network_error_is_reported_without_the_url(
    number: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def post(*_: object, **__: object) -> NoReturn:
        raise OSError(number, "of /s3cret")

    monkeypatch.setattr(ClientSession, "post", post)
    found = await send("http://192.0.2.1/s3cret")
    assert found.error.startswith(f"cannot be reached: {reason}")
    assert "s3cret" not in found.error


def test_the_signature_equals_that_of_the_reference_implementation() -> None:
    found = signature(RAW, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_in_the_standard_form_is_signed_with_the_secret() -> None:
    body, fields = message(LINKED, Webhook(url="http://ops", secret=KEY), 7.9)
    assert json.loads(body) == {
        "type": "replica.lost",
        "timestamp": "1970-01-01T00:00:05Z",
        "data": {
            "subject": "b",
            "text": LINKED.text,
            "api": "person",
            "version": "1",
            "link": LINK,
        },
    }
    assert (fields["webhook-id"], fields["webhook-timestamp"]) == ("evt_1", "7")
    assert fields["webhook-signature"] == signature(RAW, "evt_1", "7", body)
    plain = Notification("evt_1", "task.failed", 5.0, "b", "It failed.", "", "", "")
    body, fields = message(plain, Webhook(url="http://ops"), 7.0)
    assert json.loads(body)["data"] == {"subject": "b", "text": "It failed."}
    assert "webhook-signature" not in fields


def test_slack_markup_is_escaped() -> None:
    body, _ = message(LINKED, Webhook(url="http://ops", form="slack"), 7.0)
    text = "It &amp; &lt;https://evil&gt; are *lost*."
    assert json.loads(body) == {"text": f"{text} <{LINK}>"}
    plain = msgspec.structs.replace(LINKED, text="e", link="")
    body, _ = message(plain, Webhook(url="http://ops", form="slack"), 7.0)
    assert json.loads(body) == {"text": "e"}


def test_teams_gets_a_card_without_markup() -> None:
    body, _ = message(LINKED, Webhook(url="http://ops", form="teams"), 7.0)
    (attachment,) = json.loads(body)["attachments"]
    card = attachment["content"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert card["body"][0]["inlines"] == [{"type": "TextRun", "text": LINKED.text}]
    assert card["actions"][0]["url"] == LINK
