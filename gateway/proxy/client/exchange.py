"""The exchange: one request of a client, its answer, and the record of both.

The log line, the metrics and the usage of a request are written once, from its exchange.
"""

import secrets
import time
from itertools import count

from aiohttp import StreamReader
from aiohttp.http import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD

from gateway.core.clients import ANONYMOUS
from gateway.core.headers import FieldLines
from gateway.core.plan import Plan
from gateway.core.snapshot import Endpoint
from gateway.core.versions.version import Version
from gateway.proxy.client.client_request import (
    REQUEST_ID,
    ClientRequest,
    is_loggable,
    loggable_path,
)
from gateway.proxy.client.client_response import ClientResponse, ClientTransport

# Request ids are unique without a system call for each; no security depends on them.
_id_prefix = secrets.token_hex(10)
_id_count = count()


class Exchange(ClientRequest, ClientResponse):
    """One request and its answer; each step of the handler fills in attributes.

    Attributes:
        request_id: the client's X-Request-Id if it is safe to log, else a new one.
        method: the method of the request.
        path: the path of the request as it can be logged, without the query, which may hold
            secrets.
        client: the name of the client; empty if it has none.
        endpoint: the endpoint that matches the path; None if no endpoint does.
        version: the chosen version; None if none was chosen.
        fields: the header fields that every answer of that version carries.
        plan: the plan for the request; None if the request was refused.
        target: the address of the target that answered; None if none answered.
        converted: whether a body was converted.
        body: the converted body of the answer if its version is checked; else None.
        code: the code of the fault; None if there was no fault.
        cause: the cause of the fault, for the log only.
        aborted: whether the response ended before it was complete.
        began: when the head of the request had arrived, in monotonic seconds.
        sent: when the request was sent to the service, in monotonic seconds; 0 if it was not.
        answered: when the head of the service's response had arrived, in monotonic seconds; 0 if
            it did not arrive.
    """

    __slots__ = (
        *("aborted", "answered", "authority", "began", "body", "bytes_sent", "cause"),
        *("chunked", "client", "code", "connection", "content", "converted", "endpoint", "fields"),
        *("has_body", "keep_alive", "length", "message", "method", "path", "peer", "plan"),
        *("request_id", "sent", "snapshot", "status", "target", "version"),
    )

    def __init__(
        self, connection: ClientTransport, message: RawRequestMessage, content: StreamReader
    ) -> None:
        self.began = time.perf_counter()
        self.connection = connection
        self.message = message
        self.content = content
        self.has_body = content is not EMPTY_PAYLOAD
        self.length: int | None = None
        self.authority = ""
        self.keep_alive = not message.should_close
        self.chunked = False
        self.status = 0
        self.bytes_sent = 0
        self.method = message.method
        self.peer = connection.peer
        self.client: str = ANONYMOUS
        self.endpoint: Endpoint | None = None
        self.version: Version | None = None
        self.fields: FieldLines = ()
        self.plan: Plan | None = None
        self.target: str | None = None
        self.converted = False
        self.body: bytes | None = None
        self.code: str | None = None
        self.cause: str | None = None
        self.aborted = False
        self.sent = 0.0
        self.answered = 0.0
        path = message.path.partition("?")[0]
        self.path = path if is_loggable(path) else loggable_path(path)
        given = message.headers.get("X-Request-Id")
        if given is not None and REQUEST_ID.match(given):
            self.request_id = given
        else:
            self.request_id = f"{_id_prefix}{next(_id_count):012x}"
