"""The handler to which client connections pass their requests."""

from typing import Protocol, TypeVar

from aiohttp import StreamReader

from gateway.base.errors import Fault
from gateway.http.client.client_response import ClientResponse, ClientTransport, RequestMessage
from gateway.http.limits import Limits

E = TypeVar("E", bound=ClientResponse)


class HttpHandler(Protocol[E]):
    """The handler to which client connections pass their requests."""

    @property
    def limits(self) -> Limits:
        """The limits for new connections."""
        ...

    def begin(
        self, connection: ClientTransport, message: RequestMessage, content: StreamReader
    ) -> E:
        """Return the exchange of a request whose head has arrived."""
        ...

    async def answer(self, exchange: E) -> None:
        """Answer a request and handle every failure; cancelled when the client disconnects."""
        ...

    def refuse(self, exchange: E, fault: Fault) -> None:
        """Answer a request that could not be parsed with a fault."""
        ...
