"""Serving: processes requests in the only process of a gateway, or in one of several workers."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic

from gateway.access.key_sets import KeySet
from gateway.access.rate_limits import RateLimiter
from gateway.access.token_buckets import TokenBuckets
from gateway.base.overrides import Overrides
from gateway.base.span import Span
from gateway.findings.refused_rules import rules_hash
from gateway.http.client.client_server import ClientServer
from gateway.http.transport import WriteBatch
from gateway.http.upstream.health_checks import HealthChecks
from gateway.http.upstream.pool import Pool
from gateway.http.upstream.service import Service
from gateway.observe import log
from gateway.observe.failing_targets import ReportTargets, TargetWatch
from gateway.process.listening import Acceptor, Listening
from gateway.process.reloader import Reloader
from gateway.process.running import Tasks
from gateway.proxy.exchange import Exchange
from gateway.proxy.pipeline import Pipeline
from gateway.proxy.record import Recorder
from gateway.proxy.request_trace import RequestTraces, spans
from gateway.proxy.shadows import Load, Shadows, time_used
from gateway.rollout.cutover import percent_in_force
from gateway.routing.snapshot import Snapshot
from gateway.usage.delta import Deliver
from gateway.usage.operations import OperationIndexes
from gateway.verify.live.document_jobs import JobQueue
from gateway.verify.live.documented_operations import DocumentedOperations
from gateway.verify.live.sampling import Sampling

_log = logging.getLogger(__name__)

# Seconds after the grace period in which the tasks of closed connections may end.
_CLOSING_SECONDS = 0.5
# The number of endpoints of a replaced configuration that are freed in one event loop iteration;
# freeing them takes some milliseconds.
_FREED_A_TURN = 500


class Serving:
    """Processes requests with the configuration and overrides in force, and counts the requests.

    Args:
        export: exports spans; returns False if it has no room.
        shadow_load: the processor load, from 0 to 1, above which no shadow comparison begins.

    Attributes:
        share_keys: called with the arguments of `KeySet.report` after keys are fetched.
        reloaded: called with each new configuration after it is in force.
    """

    def __init__(
        self,
        reloader: Reloader,
        overrides: Overrides,
        deliver: Deliver,
        export: Callable[[Sequence[Span]], bool],
        tasks: Tasks,
        shadow_load: float,
        report: ReportTargets,
        buckets: TokenBuckets,
        documents: JobQueue,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._reloader = reloader
        self._tasks = tasks
        self.documented = DocumentedOperations(documents)
        indexes = OperationIndexes(self.documented.find)
        self._recorder = Recorder(loop, deliver, self._observe, indexes)
        self._export = export
        batch: WriteBatch = []
        self._pool = Pool(self._recorder.count, batch, log.look_up)
        self._sampling = Sampling(documents, self._recorder)
        load = Load(time_used(), shadow_load)
        self._shadows = Shadows(self._pool, self._recorder, documents.validate, load, self._trace)
        begin, record = self._recorder.begin, self._recorder.add
        traces = RequestTraces(partial(self._recorder.count, "spans_dropped", "rate"))
        limiter = RateLimiter(buckets, monotonic, self._recorder.count, self._recorder.admit)
        self._pipeline = Pipeline(
            reloader.latest, self._pool, self._shadows, begin, record, traces, limiter
        )
        self._pipeline.overrides = overrides
        self._server = ClientServer(
            self._pipeline,
            partial(self._recorder.count, "client_bounds"),
            batch,
            self._refused_handshake,
        )
        self.share_keys: Callable[[KeySet, bytes, float], None] = lambda *_: None
        self.reloaded: Callable[[Snapshot], None] = lambda _: None
        self._logged = 0.0  # the time of the last logged handshake failure
        self._server.listeners = {each.address: each for each in self._pipeline.snapshot.listen}
        self._other_listeners: dict[int, tuple[str, socket.socket]] = {}
        self._standing_in: dict[int, Acceptor] = {}
        self._watch = TargetWatch(self._pool, report)
        self._checks = HealthChecks(self._pool, log.health, tasks.start)
        self._pool.follow(self._services())
        self._follow_keys()
        self._pool.readdressed = self._check_health
        self._check_health()

    def apply(self, overrides: Overrides) -> None:
        """Deliver the counts so far; apply the overrides from the next request on."""
        self._recorder.record_added()
        self._recorder.flush()
        for key, cutover in self._pipeline.snapshot.cutovers.items():
            if percent_in_force(cutover, overrides) < percent_in_force(
                cutover, self._pipeline.overrides
            ):
                self._recorder.percentage_fell(key)
        self._pipeline.overrides = overrides

    def set_ahead(self, seconds: float) -> None:
        """Set by how many seconds the store's clock, which dates refer to, is ahead."""
        self._pipeline.ahead = seconds

    async def serve(
        self,
        listeners: Sequence[Listening],
        stop: asyncio.Event,
        grace: float,
        announce: Callable[[], None],
    ) -> None:
        """Process requests until stopped, then finish those in flight within `grace` seconds.

        `listeners` has, for each address, the socket of this worker and those of the others.
        """
        acceptors = [await self._accept(each.address, each.own) for each in listeners]
        self._other_listeners = {
            other.fileno(): (each.address, other) for each in listeners for other in each.others
        }
        following = self._tasks.start("reload", self._follow)
        watching = self._tasks.start("targets", partial(self._watch.run, self._services))
        announce()
        await stop.wait()

        following.stop()
        watching.stop()
        self._checks.stop()
        for acceptor in acceptors:
            acceptor.close()
        await self.stand_in([])
        while self._other_listeners:  # the kernel queues connections at open ones
            _, (_, other) = self._other_listeners.popitem()
            other.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._server.finish()
        await self._server.cut(_CLOSING_SECONDS)
        self._shadows.close()
        self._pool.close()
        self._recorder.record_added()
        log.flush()
        self._recorder.flush()

    async def stand_in(self, numbers: Iterable[int]) -> None:
        """Accept connections from exactly these sockets of other workers as well."""
        wanted = self._other_listeners.keys() & numbers
        for number in self._standing_in.keys() - wanted:
            self._standing_in.pop(number).close()
        for number in wanted - self._standing_in.keys():
            with suppress(OSError):  # no free descriptor: these connections have to wait
                address, other = self._other_listeners[number]
                self._standing_in[number] = await self._accept(address, other.dup())

    async def _accept(self, address: str, listener: socket.socket) -> Acceptor:
        return await Acceptor.open(partial(self._server.accept, address), listener)

    def _refused_handshake(self, reason: str, text: str, peer: str) -> None:
        """Count a connection that ended in its handshake; log at most one per second."""
        self._recorder.count("client_handshake_failures", reason)
        now = monotonic()
        if (
            reason != "closed" and now - self._logged >= 1
        ):  # "closed": health checks of load balancers
            self._logged = now
            log.event("handshake_failed", "warning", client=peer, reason=text)

    def _follow_keys(self) -> None:
        naming = self._pipeline.snapshot.naming
        for key_set in () if naming is None else naming.key_sets:
            key_set.report = self._fetched_keys

    def _fetched_keys(self, keys: KeySet, document: bytes, seconds: float) -> None:
        if not keys.failure:
            self.share_keys(keys, document, seconds)
            self._recorder.count("key_fetches", keys.url, "fetched")
            return
        self._recorder.count("key_fetches", keys.url, "failed")
        log.event("keys_not_fetched", "warning", url=keys.url, reason=keys.failure)

    def _check_health(self) -> None:
        self._checks.follow(self._services())

    def _services(self) -> Iterable[Service]:
        return self._pipeline.snapshot.services.values()

    async def _follow(self) -> None:
        async for snapshot in self._reloader.changes():
            former, self._pipeline.snapshot = self._pipeline.snapshot, snapshot
            self._server.listeners |= {each.address: each for each in snapshot.listen}
            self._pool.follow(snapshot.services.values())
            self._follow_keys()
            self._check_health()
            self.reloaded(snapshot)
            endpoints = [*former.router]
            del former
            while endpoints:  # freeing 10,000 endpoints at once takes 50 ms and more
                del endpoints[-_FREED_A_TURN:]
                await asyncio.sleep(0)
            log.event("config_loaded", rules=rules_hash(self._reloader.content))

    def _observe(self, exchanges: Sequence[Exchange]) -> None:
        traced: list[Span] = []
        for exchange in exchanges:
            try:
                if exchange.span is not None:
                    traced += spans(exchange, exchange.span)
                if exchange.copy is not None:
                    self._sampling.record(exchange)
            except Exception:  # an error in recording must not affect other requests
                _log.exception("request %s could not be recorded", exchange.request_id)
        if traced:
            self._trace(traced)

    def _trace(self, spans: Sequence[Span]) -> None:
        if not self._export(spans):
            self._recorder.count("spans_dropped", "worker", times=len(spans))
