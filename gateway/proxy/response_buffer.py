"""Buffers responses that clients read slowly, so that services can finish them early."""

import asyncio

from gateway.base import headers
from gateway.base.headers import HeaderFields
from gateway.conversion.formats.body_format import BodyFormat, format_of
from gateway.http.bounds import LOOK_SECONDS, SlowClients, SlowReadDetector
from gateway.http.client.message import ClientTransport, unsent_bytes
from gateway.http.upstream.upstream import UpstreamResponse
from gateway.proxy.body_capture import CaptureBudget, CapturedBody, CapturingResponse
from gateway.proxy.exchange import Exchange, ResponseCopy

# The maximum number of buffered bytes for one client, and for all clients together. If the limit is
# reached, the service must wait for the client, and the request stays in flight.
_ONE = 512 * 1024
_ALL = 32 * 1024 * 1024
# The maximum bytes of one copy of a response for validation, and of all current copies.
_ONE_COPIED = 256 * 1024
_ALL_COPIED = 4 * 1024 * 1024


class ResponseBuffers:
    """The buffers of all responses that are being forwarded, with one budget of bytes."""

    def __init__(self) -> None:
        self._held = 0
        self._copies = CaptureBudget(_ALL_COPIED)

    async def pass_on(self, exchange: Exchange, response: UpstreamResponse) -> None:
        """Write a body, after its head; raises FaultError, or ConnectionError for a slow client."""
        held = 0
        try:
            while piece := await response.read():
                exchange.put(piece)
                if not exchange.connection.writing_paused:
                    continue
                size = len(piece)
                if held + size <= _ONE and self._held + size <= _ALL:
                    held += size
                    self._held += size
                else:
                    await wait_until_read(exchange, response.holders)
                    self._held -= held
                    held = 0
            exchange.end(trailers(exchange, response))
            if held:
                response.release()
                await exchange.wait_until_read()
        finally:
            self._held -= held

    async def pass_on_copied(
        self, exchange: Exchange, response: UpstreamResponse, fields: HeaderFields
    ) -> None:
        """Write a body as `pass_on` does, and copy it if it is JSON and not too large.

        If a body is not JSON, only its media type is validated. An empty copy is then sufficient.
        """
        if format_of(fields) is not BodyFormat.JSON:
            await self.pass_on(exchange, response)
            exchange.copy = ResponseCopy(fields, b"", False)
            return
        copy = CapturedBody(self._copies, _ONE_COPIED)
        try:
            await self.pass_on(exchange, CapturingResponse(response, copy, lambda _: None))
            if copy.lost is None:
                exchange.copy = ResponseCopy(fields, copy.whole(), False)
        finally:
            copy.drop("over")


async def wait_until_read(exchange: Exchange, holders: SlowClients | None) -> None:
    """Wait until the client has read enough; raises ConnectionError if it is too slow.

    The exchange is in `holders`, which hold a shared resource, while its client is slow. None if no
    other exchange can wait for the resource.
    """
    if holders is None or not exchange.connection.writing_paused:
        await exchange.wait_until_read()
        return
    connection, loop = exchange.connection, asyncio.get_running_loop()
    give_way = connection.give_way
    taking = SlowReadDetector(_unsent(connection))
    timer: asyncio.TimerHandle

    def look() -> None:
        nonlocal timer
        taking.look(_unsent(connection))
        (holders.add if taking.slow else holders.remove)(give_way)
        timer = loop.call_later(LOOK_SECONDS, look)

    timer = loop.call_later(LOOK_SECONDS, look)
    try:
        await exchange.wait_until_read()
    finally:
        timer.cancel()
        holders.remove(give_way)


def _unsent(connection: ClientTransport) -> int:
    return 0 if connection.transport is None else unsent_bytes(connection.transport)


def trailers(
    exchange: Exchange, response: UpstreamResponse, *, altered: bool = False
) -> HeaderFields:
    """Return the trailer fields to forward, without digests if the body is `altered`."""
    if not exchange.accepts_trailers:
        return []
    fields = headers.trailer_fields(response.trailers)
    if altered:
        exchange.count_digests(name.lower() for name, _ in fields)
        fields = headers.end_to_end(fields, headers.DIGESTS)
    return fields
