"""A gateway without sockets: the real pipeline, server and pool use transports in memory."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from aiohttp.streams import EMPTY_PAYLOAD

from gateway.access.rate_limits import RateLimiter
from gateway.access.token_buckets import TokenBuckets, shared_memory
from gateway.base.span import Span
from gateway.http.client.client_server import ClientServer
from gateway.http.client.message import ClientTransport
from gateway.http.client.request_parsing import UNREAD
from gateway.http.transport import WriteBatch
from gateway.http.upstream.pool import Pool
from gateway.http.upstream.upstream import Upstream, UpstreamRequest
from gateway.proxy.exchange import Exchange
from gateway.proxy.pipeline import Pipeline
from gateway.proxy.record import Recorder
from gateway.proxy.request_trace import RequestTraces
from gateway.proxy.shadows import Load, Shadows
from gateway.rollout.differences import RefusedField
from gateway.routing.plan import Plan
from gateway.rules.load import load
from tests.gateway.world import snapshot

Answer = Callable[[bytes], bytes]


class Wire(asyncio.Transport):
    """One end of a connection, which records the written data and calls `written`."""

    def __init__(self, written: Callable[["Wire"], None], **names: object) -> None:
        super().__init__()
        self.data = b""
        self.written = written
        self.names = names
        self.protocol: Any = None
        self.closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.names.get(name, default)

    def write(self, data: Any) -> None:
        self.data += data
        self.written(self)

    def is_closing(self) -> bool:
        return self.closing

    def nothing(self, *_: object, **__: object) -> None:
        """Do nothing."""

    pause_reading = resume_reading = close = abort = write_eof = nothing
    set_write_buffer_limits = nothing


class Somewhere:
    peer = "192.0.2.1"
    scheme = "http"
    certificate = None


def exchange() -> Exchange:
    exchange = Exchange(cast(ClientTransport, Somewhere()), UNREAD, EMPTY_PAYLOAD)
    exchange.method, exchange.status = "GET", 200
    exchange.snapshot = snapshot([])
    return exchange


def whole_request(data: bytes) -> bool:
    """Return whether a request is complete. Its body, if any, has a Content-Length."""
    head, mark, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    return bool(mark) and len(body) >= sum(lengths)


class Gateway:
    """A gateway with one client connection and simulated services.

    Args:
        services: For each port, a function that returns the response to a request.
        record: A function that is also called with every ended exchange.

    Attributes:
        compared: The method of each compared response, and whether the response differs.
        samples: The samples of shadows, each with its request.
        refuses: The result of every validation; None simulates a missing document.
    """

    def __init__(
        self,
        rules: str,
        services: dict[int, Answer],
        record: Callable[[Exchange], None] = lambda _: None,
        upstream: Upstream | None = None,
    ) -> None:
        self.requests: dict[int, list[bytes]] = {port: [] for port in services}
        self.begun: list[Exchange] = []
        self.exchanges: list[Exchange] = []
        self.counted: list[tuple[str, ...]] = []
        self.compared: list[tuple[str, bool]] = []
        self.samples: list[tuple[object, dict[str, str]]] = []
        self.trials: list[tuple[str, Plan, UpstreamRequest]] = []
        self.spans: list[Span] = []
        self.refuses: list[RefusedField] | None = []
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._loop.create_connection = self._connect  # type: ignore[method-assign, assignment]
        snapshot = load(rules.encode(), "gateway.yaml", {})
        writes: WriteBatch = []
        self.upstream = upstream or Pool(lambda *_: None, writes)
        recorder = cast(Recorder, self)  # it has the methods that shadows use
        load_meter = Load(lambda: 0.0, 1)
        self.shadows = Shadows(self.upstream, recorder, self.validate, load_meter, self.trace)
        self.pipeline = Pipeline(
            snapshot,
            self.upstream,
            self.shadows,
            self.begun.append,
            self._record,
            RequestTraces(lambda: self.count("spans_dropped", "rate")),
            RateLimiter(TokenBuckets(shared_memory()), lambda: 0.0, self.count, lambda *_: None),
        )
        self._recorded = asyncio.Event()
        self._also = record
        self.client = Wire(
            lambda _: None, peername=("192.0.2.1", 40000), sockname=("127.0.0.1", 8080)
        )
        self.client.protocol = ClientServer(self.pipeline, lambda _: None, writes)()
        self.client.protocol.connection_made(self.client)

    def count(self, kind: str, *labels: str, times: int = 1) -> None:
        self.counted += [(kind, *labels)] * times

    def compare(self, exchange: Exchange, *, differs: bool) -> None:
        self.compared.append((exchange.method, differs))

    def trace(self, spans: Sequence[Span]) -> None:
        self.spans += spans

    def latency(self, api: str, version: str, old: float, new: float) -> None:
        assert min(old, new) > 0
        self.counted.append(("latency", api, version))

    takes_samples = True

    def sample(
        self, kind: str, api: str, version: str, document: object, request: dict[str, str]
    ) -> None:
        self.samples.append((document, request))

    async def validate(
        self, document: str, plan: Plan, request: UpstreamRequest
    ) -> list[RefusedField] | None:
        self.trials.append((document, plan, request))
        return self.refuses

    async def ask(self, request: bytes) -> bytes:
        """Send a client's request, and return the response after all comparisons have ended."""
        self._recorded.clear()
        self.client.data = b""
        self.client.protocol.data_received(request)
        await self._recorded.wait()
        while self.shadows._running:
            await asyncio.wait(self.shadows._running)
        await asyncio.sleep(0)  # now the connection is ready for another request
        return self.client.data

    def close(self) -> None:
        self.client.protocol.connection_lost(None)
        if isinstance(self.upstream, Pool):
            self.upstream.close()

    def _record(self, exchange: Exchange) -> None:
        self._also(exchange)
        self.exchanges.append(exchange)
        self._recorded.set()

    async def _connect(
        self, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[Wire, asyncio.Protocol]:
        def written(wire: Wire) -> None:
            if whole_request(wire.data):
                request, wire.data = wire.data, b""
                self.requests[port].append(request)
                self._loop.call_soon(wire.protocol.data_received, self._services[port](request))

        wire = Wire(written)
        wire.protocol = factory()
        wire.protocol.connection_made(wire)
        return wire, wire.protocol
