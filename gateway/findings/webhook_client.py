"""WebhookClient: posts messages, and says why one was not taken."""

import asyncio
import errno
import os
import ssl
from types import TracebackType
from typing import Self, cast

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientError,
    ClientHttpProxyError,
    ClientProxyConnectionError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    TCPConnector,
)
from aiohttp.connector import Connection

from gateway.base.notify_rules import Webhook
from gateway.findings.notification import Attempt, Notification
from gateway.findings.webhook_message import message

# From the connection to the head of the answer, in seconds; Standard Webhooks suggests 15 to 30.
_SECONDS = 15.0
# Of what comes up to the end of that head; an answer of a few lines is what Standard Webhooks asks.
_BYTES = 64 * 1024


class _TooLongError(ClientError):
    """A receiver has sent too much before its answer."""


class _BoundedConnection(asyncio.Protocol):
    """A connection of which few bytes are taken; the client's own protocol does the rest.

    aiohttp bounds one head, but reads any number of those that only announce another one (1xx).
    """

    def __init__(self, transport: asyncio.Transport, inner: asyncio.Protocol) -> None:
        self._transport = transport
        self._inner = inner
        self._left = _BYTES

    @property
    def full(self) -> bool:
        """Whether more has come than is taken."""
        return self._left < 0

    def data_received(self, data: bytes) -> None:
        """Hand on what is taken, and end the connection where there is more."""
        taken, self._left = data[: max(self._left, 0)], self._left - len(data)
        if taken:
            self._inner.data_received(taken)
        if self.full:
            self._transport.abort()

    def eof_received(self) -> bool | None:
        """Hand on that the receiver sends no more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Hand on that the receiver reads too slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that the receiver reads again."""
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on that the connection has ended."""
        self._inner.connection_lost(exc)


class _BoundedResponse(ClientResponse):
    """A response whose head is bounded, with all that comes before it."""

    async def start(self, connection: Connection) -> ClientResponse:
        """Read the head; raises _TooLongError."""
        inner, transport = connection.protocol, cast(asyncio.Transport, connection.transport)
        assert inner is not None  # it is, until the connection is released
        bounded = _BoundedConnection(transport, inner)
        transport.set_protocol(bounded)
        try:
            return await super().start(connection)
        except ClientError:
            if bounded.full:
                raise _TooLongError from None
            raise
        finally:
            transport.set_protocol(inner)


class WebhookClient:
    """A client for webhooks; use it with `async with`."""

    async def __aenter__(self) -> Self:
        """Begin."""
        # Proxies of the environment (HTTPS_PROXY) lead to where most receivers are.
        # aiohttp's own context has no authorities here, as it was made without them at the start.
        connector = TCPConnector(ssl=ssl.create_default_context())
        timeout = ClientTimeout(_SECONDS)
        self._session = ClientSession(
            connector=connector,
            trust_env=True,
            timeout=timeout,
            response_class=_BoundedResponse,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End."""
        await self._session.close()

    async def send(self, one: Notification, webhook: Webhook, now: float) -> Attempt:
        """Post a message once; its URL, which may be a secret, is in no error."""
        body, fields = message(one, webhook, now)
        try:
            async with self._session.post(
                webhook.url, data=body, headers=fields, allow_redirects=False
            ) as answer:
                status = answer.status
        except TimeoutError:
            return Attempt(f"no answer within {_SECONDS:g} s")
        except _TooLongError:
            return Attempt(f"no answer within {_BYTES // 1024} KiB")
        except (ClientError, OSError, asyncio.IncompleteReadError) as error:
            reason = _reason(error, f"correct notify.webhooks.{webhook.name}.url in the rules")
            return Attempt(f"cannot be reached: {reason}")
        if 200 <= status < 300:
            return Attempt("")
        # Standard Webhooks: 410 asks to send nothing more.
        return Attempt(f"it answered {status}{_hint(status, webhook)}", final=status == 410)


def _hint(status: int, webhook: Webhook) -> str:
    """Return what would be right where the receiver does not take such a message."""
    if status >= 500 or status in (408, 429):  # it cannot take any now
        return ""
    return f"; correct notify.webhooks.{webhook.name} in the rules, or see the log of the receiver"


def _reason(error: Exception, correct: str) -> str:
    """Return why a webhook was not reached, and what would be right, without its URL.

    Args:
        error: of the client, whose text may have the URL.
        correct: how to correct the URL.
    """
    if isinstance(error, ClientProxyConnectionError | ClientHttpProxyError):
        return "the proxy of the environment lets nothing through; see HTTPS_PROXY and NO_PROXY"
    if isinstance(error, ClientConnectorDNSError):
        return f"its host has no address; {correct}, or see the DNS of this machine"
    if isinstance(error, ClientConnectorCertificateError):
        return "its certificate is not valid here; name its authority in SSL_CERT_FILE"
    if isinstance(error, ClientSSLError):
        return f"no TLS can be agreed on; is it one that begins with http:? {correct}"
    if isinstance(error, ClientResponseError):
        return f"what is there does not speak HTTP; {correct}"
    if not isinstance(error, OSError) or not error.errno:
        return "the connection ended without an answer; see the log of the receiver"
    if error.errno == errno.ECONNREFUSED:
        return f"nothing listens at its host and port; start the receiver, or {correct}"
    return f"{os.strerror(error.errno).lower()}; {correct}, or see the network of this machine"
