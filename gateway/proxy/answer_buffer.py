"""Buffers answers that clients take slowly, so that the services that sent them are soon free."""

from gateway.core import headers
from gateway.core.headers import HeaderFields
from gateway.proxy.client.exchange import Exchange
from gateway.proxy.upstream.upstream import UpstreamResponse

# The maximum bytes that wait for one client, and for all together. With more, the service waits for
# the client, and keeps its place among the requests in flight.
_ONE = 512 * 1024
_ALL = 32 * 1024 * 1024


class AnswerBuffers:
    """The buffers of all answers that are passed on at a time, with one budget of bytes."""

    def __init__(self) -> None:
        self._held = 0

    async def pass_on(self, exchange: Exchange, response: UpstreamResponse) -> None:
        """Write the body of a response, whose head is written, while it arrives.

        Raises:
            FaultError: the response broke off.
            ConnectionError: the client takes too little of it, or disconnected.
        """
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
                    await exchange.taken()
                    self._held -= held
                    held = 0
            exchange.end(trailers(exchange, response))
            if held:
                response.release()
                await exchange.taken()
        finally:
            self._held -= held


def trailers(exchange: Exchange, response: UpstreamResponse) -> HeaderFields:
    """Return the trailer fields to forward; none if the client does not accept trailers."""
    return headers.trailing(response.trailers) if exchange.takes_trailers else []
