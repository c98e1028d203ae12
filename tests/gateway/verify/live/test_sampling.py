"""Sampling of live responses: selection, the bounded queue, and the counted violations."""

import asyncio
import json
from collections.abc import Collection
from pathlib import Path

from gateway.proxy.cutover_counts import CutoverPlace
from gateway.proxy.exchange import Exchange, ResponseCopy
from gateway.proxy.record import Recorder
from gateway.rollout.cutover import CutoverRoute
from gateway.routing.plan import Plan, plan
from gateway.rules.load import load
from gateway.usage.delta import OperationName
from gateway.verify.live.document_jobs import JobQueue, MessageCheck
from gateway.verify.live.sampling import SampleBudget, Sampling
from tests.gateway.documents import LocalDocuments
from tests.gateway.proxy import wires
from tests.gateway.world import head

RULES = """
services: { s: { targets: ["http://127.0.0.1:1"] } }
apis:
  person:
    endpoints: [ { path: "/v{version}/person", upstream_path: /person, version: { in: path } } ]
    versions:
      "1": { via: "2", schema: v1.json, check: { percent: 50 } }
      "2": { service: s }
    conversions: [ { between: ["1", "2"], changes: [] } ]
"""
SCHEMA = {"properties": {"a": {"type": "string"}}}
DOCUMENT = {
    "openapi": "3.1.0",
    "paths": {
        "/person": {
            "get": {"responses": {"200": {"content": {"application/json": {"schema": SCHEMA}}}}}
        }
    },
}


class Tally(Recorder):
    def __init__(self) -> None:
        self.violations: list[tuple[str, ...]] = []
        self.checked = self.unchecked = 0
        self.gated: list[tuple[CutoverPlace, OperationName, list[str]]] = []

    def check(self, place: CutoverPlace, operation: OperationName, fields: Collection[str]) -> None:
        self.gated.append((place, operation, sorted(fields)))

    def count(self, kind: str, *labels: str, times: int = 1) -> None:
        if kind == "unchecked":
            self.unchecked += 1
        elif kind == "checked":
            assert labels == ("person", "1")
            self.checked += 1
        else:
            assert kind == "violations"
            self.violations.append(labels)


def answered(body: bytes) -> Exchange:
    chosen = plan(load(RULES.encode(), "gateway.yaml", {}), head("/v1/person"))
    assert isinstance(chosen, Plan)
    exchange = wires.exchange()
    exchange.plan = chosen
    exchange.copy = ResponseCopy([(b"Content-Type", b"application/json")], body, converted=True)
    return exchange


def sampling(folder: Path, tally: Tally, draw: float = 0.0) -> Sampling:
    (folder / "v1.json").write_text(json.dumps(DOCUMENT))
    return Sampling(LocalDocuments(folder), tally, draw=lambda: draw)


async def settled() -> None:
    """Return after the callbacks of all results."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_violations_are_counted_by_field(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    for body in (b'{"a":1}', b'{"a":""}', rb'{"a":"\ud800"}', b'{"a":[]}'):
        samples.record(answered(body))
    await settled()
    assert tally.violations == [("person", "1", "/a")] * 2
    assert tally.checked == 4


async def test_the_random_draw_decides_whether_a_response_is_sampled(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    drawn = iter((0.5, 0.99, 0.49))
    samples.draw = lambda: next(drawn)
    for _ in range(3):
        samples.record(answered(b'{"a":1}'))
    await settled()
    assert len(tally.violations) == 1


GATED = RULES.replace(
    'via: "2", schema: v1.json, check: { percent: 50 }',
    'service: s, schema: v1.json, cutover: { via: "2", percent: 50, gates: { errors: 1% } }',
)


def moving(route: CutoverRoute, method: str = "GET", body: bytes = b'{"a":1}') -> Exchange:
    """Return the exchange of a request in a cutover. The unconverted response has this body."""
    snapshot = load(GATED.encode(), "gateway.yaml", {})
    chosen = plan(snapshot, head("/v1/person"))
    assert isinstance(chosen, Plan)
    exchange = wires.exchange()
    exchange.snapshot, exchange.plan, exchange.endpoint = snapshot, chosen, chosen.endpoint
    exchange.version, exchange.cutover_route = chosen.route.version, route
    exchange.method, exchange.client = method, "a"
    exchange.copy = ResponseCopy([(b"Content-Type", b"application/json")], body, converted=False)
    return exchange


async def test_gates_receive_validated_samples_of_both_routes(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    for route in CutoverRoute:
        samples.record(moving(route))
        samples.record(moving(route, body=b'{"a":""}'))
    await settled()
    field = ["GET /v{version}/person /a"]
    assert [(place[2], fields) for place, _, fields in tally.gated] == [
        *(("old", field), ("old", []), ("new", field), ("new", []))
    ]
    assert {place[:2] + place[3:] for place, _, _ in tally.gated} == {("person", "1", "a")}
    assert (tally.checked, tally.violations) == (0, [])
    assert list(samples._seen.values()) == [1]


async def test_both_routes_of_a_cutover_share_a_sample_budget(tmp_path: Path) -> None:
    """Writes have their own budget. Large bodies exhaust the budget of bytes."""
    samples, now = sampling(tmp_path, Tally()), [10.0]
    samples.clock = lambda: now[0]
    documents = samples.documents
    assert isinstance(documents, LocalDocuments)

    def taken() -> list[str]:
        found = [job.method for job in documents.asked if isinstance(job, MessageCheck)]
        documents.asked.clear()
        return found

    for _ in range(49):
        samples.record(moving(CutoverRoute.OLD))
    samples.record(moving(CutoverRoute.NEW))
    assert len(taken()) == 50
    for route in CutoverRoute:
        samples.record(moving(route))
    assert taken() == []
    now[0] += 0.03
    samples.record(moving(CutoverRoute.NEW))
    samples.record(moving(CutoverRoute.OLD))
    samples.record(moving(CutoverRoute.OLD, "POST"))
    assert taken() == ["GET", "POST"]
    now[0] += 60
    for _ in range(9):
        samples.record(moving(CutoverRoute.OLD, body=b" " * 150_000))
    assert len(taken()) == 6


async def test_a_request_without_a_cutover_route_is_not_sampled(tmp_path: Path) -> None:
    samples = sampling(tmp_path, Tally())
    exchange = moving(CutoverRoute.NEW)
    exchange.cutover_route = None
    samples.record(exchange)
    assert isinstance(samples.documents, LocalDocuments)
    assert samples.documents.asked == []


async def test_samples_that_do_not_fit_in_the_queue_are_counted_as_unchecked(
    tmp_path: Path,
) -> None:
    tally, queue = Tally(), JobQueue()
    samples = Sampling(queue, tally, draw=lambda: 0.0)
    for _ in range(100):
        samples.record(answered(b'{"a":1}'))
    samples.record(answered(b" " * (256 * 1024 + 1)))
    await settled()
    assert tally.unchecked == 37
    await queue.next()
    for _ in range(2):
        samples.record(answered(b'{"a":1}'))
    await settled()
    assert tally.unchecked == 38


async def test_a_sample_without_a_usable_document_is_counted_as_unchecked(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    (tmp_path / "v1.json").unlink()
    samples.record(answered(b'{"a":1}'))
    await settled()
    assert (tally.checked, tally.unchecked) == (0, 1)


async def test_a_body_that_is_not_json_does_not_stop_sampling(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    for body in (b"{", b'{"a":1}'):
        samples.record(answered(body))
    await settled()
    assert [field for *_, field in tally.violations] == ["body", "/a"]


async def test_aborted_responses_are_not_sampled(tmp_path: Path) -> None:
    exchange = answered(b"{}")
    exchange.aborted = True
    samples = sampling(tmp_path, Tally())
    samples.record(exchange)
    assert isinstance(samples.documents, LocalDocuments)
    assert samples.documents.asked == []


def test_the_bucket_of_samples_holds_at_most_the_tokens_of_one_second() -> None:
    budget = SampleBudget(3)
    for left in (True, True, True, False):
        assert budget.has(1, 10.0) is left
        budget.take(left)
    assert not budget.has(1, 10.3)
    assert budget.has(1, 10.4)
    assert budget.has(3, 100.0)
    assert not budget.has(3.1, 200.0)
