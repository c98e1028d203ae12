"""Sends one message to a webhook, in the format of Standard Webhooks (signed) or of a chat."""

import asyncio
import errno
import os
import ssl
from base64 import b64encode
from functools import partial
from hashlib import sha256
from hmac import new as hmac
from typing import Any, cast

import aiohttp
import msgspec
from aiohttp.client_proto import ResponseHandler

from gateway import __version__
from gateway.base.notify import Webhook
from gateway.findings.formatting import format_time
from gateway.findings.notifications import Attempt, Notification

# The time limit from connecting to the response head. Standard Webhooks suggests 15 to 30 seconds.
_SECONDS = 15.0
# The maximum number of bytes up to the end of the response head.
_BYTES = 64 * 1024
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class _TooLongError(aiohttp.ClientError):
    """The response head and the interim responses before it exceed the size limit."""


class _BoundedHandler(ResponseHandler):
    """Limits the response head including interim responses, whose number aiohttp does not limit."""

    _left = _BYTES

    def set_response_params(self, **params: Any) -> None:
        self._left = _BYTES
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        taken, self._left = data[: max(self._left, 0)], self._left - len(data)
        if taken:
            super().data_received(taken)
        if self._left < 0 and self.transport is not None:
            self.set_exception(_TooLongError())  # a complete head is still returned
            self.transport.abort()


def webhook_session() -> aiohttp.ClientSession:
    """Return a session for `post` that uses the proxies of the environment, such as HTTPS_PROXY."""
    # A new context, since aiohttp creates its default context without certificate authorities.
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context())
    kind = cast(type[ResponseHandler], _BoundedHandler)
    connector._factory = partial(kind, loop=asyncio.get_running_loop())  # noqa: SLF001
    timeout = aiohttp.ClientTimeout(_SECONDS)
    return aiohttp.ClientSession(connector=connector, trust_env=True, timeout=timeout)


async def post(
    session: aiohttp.ClientSession, one: Notification, name: str, webhook: Webhook, now: float
) -> Attempt:
    body, fields = message(one, webhook, now)
    try:
        async with session.post(
            webhook.url, data=body, headers=fields, allow_redirects=False
        ) as response:
            status = response.status
    except TimeoutError:
        return Attempt(f"no response within {_SECONDS:g} s")
    except _TooLongError:
        return Attempt(f"no response within {_BYTES // 1024} KiB")
    except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
        reason = _reason(error, f"correct notify.webhooks.{name}.url in the configuration")
        return Attempt(f"cannot be reached: {reason}")
    if 200 <= status < 300:
        return Attempt("")
    if status >= 500 or status in (408, 429):  # a retry may succeed
        return Attempt(f"it responded with status {status}")
    correct = f"correct notify.webhooks.{name} in the configuration"
    # Standard Webhooks: a receiver returns 410 if it does not want further messages.
    return Attempt(
        f"it responded with status {status}; {correct}, or see the receiver's log", status == 410
    )


def _reason(error: Exception, correct: str) -> str:
    """Return why a webhook failed, without the message of the error, which contains the URL."""
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return "the proxy of the environment refused; see HTTPS_PROXY and NO_PROXY"
        case aiohttp.ClientConnectorDNSError():
            return f"its host has no address; {correct}, or see the DNS of this machine"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not valid here; name its authority in SSL_CERT_FILE"
        case aiohttp.ClientSSLError():
            return f"TLS failed; if the URL has to begin with http:, {correct}"
        case aiohttp.ClientResponseError():
            return f"the server there does not use HTTP; {correct}"
        case OSError(errno=errno.ECONNREFUSED):
            return f"nothing listens at its host and port; start the receiver, or {correct}"
        case OSError(errno=int(number)) if number:
            text = os.strerror(number).lower()
            return f"{text}; {correct}, or see the network of this machine"
    return "the connection ended without a response; see the receiver's log"


def message(one: Notification, webhook: Webhook, now: float) -> tuple[bytes, dict[str, str]]:
    body = msgspec.json.encode(_content(one, webhook.form))
    stamp = str(int(now))
    fields = {
        "Content-Type": "application/json",
        "User-Agent": f"version-gateway/{__version__}",
        "webhook-id": one.id,
        "webhook-timestamp": stamp,
    }
    if (key := webhook.key()) is not None:
        fields["webhook-signature"] = signature(key, one.id, stamp, body)
    return body, fields


def signature(key: bytes, identity: str, stamp: str, body: bytes) -> str:
    """Return the Standard Webhooks signature: HMAC-SHA256 of id, time of the attempt and body."""
    signed = b".".join((identity.encode(), stamp.encode(), body))
    return f"v1,{b64encode(hmac(key, signed, sha256).digest()).decode()}"


def _content(one: Notification, form: str) -> object:
    if form == "slack":
        text = one.text.translate(_SLACK)
        return {"text": f"{text} <{one.link}>" if one.link else text}
    if form == "teams":
        # A TextBlock would interpret names as Markdown.
        block = {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": one.text}]}
        card: dict[str, object] = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": [block],
        }
        if one.link:
            card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": one.link}]
        kind = "application/vnd.microsoft.card.adaptive"
        return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
    data = {"subject": one.subject, "text": one.text}
    data |= {"api": one.api, "version": one.version} if one.api else {}
    data |= {"link": one.link} if one.link else {}
    return {"type": one.kind, "timestamp": format_time(one.at), "data": data}
