"""What is sampled waits in a bounded queue; what finds no room is shed."""

import asyncio
import json
from pathlib import Path

from gateway.config.load import load
from gateway.core.plan import Plan, plan
from gateway.proxy.client.exchange import Exchange
from gateway.telemetry.recorder import Recorder
from gateway.verify.live.contracts import Contracts
from gateway.verify.live.sampling import Sampling
from tests.gateway.core.world import head
from tests.gateway.proxy import wires
from tests.gateway.talk import soon

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
    """Notes the violations that it is told, and how many answers were checked."""

    def __init__(self) -> None:
        self.violations: list[tuple[str, ...]] = []
        self.checked = self.unchecked = 0

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
    """Return the exchange of a request for version 1 that got this body."""
    chosen = plan(load(RULES.encode(), "gateway.yaml", {}), head("/v1/person"))
    assert isinstance(chosen, Plan)
    exchange = wires.exchange()
    exchange.plan, exchange.body = chosen, body
    return exchange


def sampling(folder: Path, tally: Tally, draw: float = 0.0) -> Sampling:
    (folder / "v1.json").write_text(json.dumps(DOCUMENT))
    return Sampling(Contracts(folder), tally, draw=lambda: draw)


async def counted(samples: Sampling, tally: Tally, many: int) -> None:
    """Let the samples be validated until so many violations are counted."""
    running = asyncio.create_task(samples.run())
    await soon(lambda: len(tally.violations) >= many)
    running.cancel()


async def test_violations_are_told_per_field(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    for body in (b'{"a":1}', b'{"a":""}', rb'{"a":"\ud800"}', b'{"a":[]}'):
        samples.record(answered(body))
    await counted(samples, tally, 2)
    assert tally.violations == [("person", "1", "/a")] * 2
    assert tally.checked == 4


async def test_the_draw_decides(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    drawn = iter((0.5, 0.99, 0.49))
    samples.draw = lambda: next(drawn)
    for _ in range(3):
        samples.record(answered(b'{"a":1}'))
    await counted(samples, tally, 1)
    assert len(tally.violations) == 1


async def test_the_queue_is_bounded(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    for _ in range(100):
        samples.record(answered(b'{"a":1}'))
    assert samples.shed == 36
    await counted(samples, tally, 64)
    samples.record(answered(b'{"a":1}'))
    assert samples.shed == 36


async def test_bytes_are_bounded(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    samples.record(answered(b" " * (256 * 1024 + 1)))
    assert samples.shed == 1
    assert tally.unchecked == 1
    for _ in range(5):
        samples.record(answered(b" " * 256 * 1024))
    assert samples.shed == 2


async def test_a_body_that_is_not_json_ends_nothing(tmp_path: Path) -> None:
    tally = Tally()
    samples = sampling(tmp_path, tally)
    for body in (b"{", b'{"a":1}'):
        samples.record(answered(body))
    await counted(samples, tally, 1)


async def test_what_was_aborted_is_not_sampled(tmp_path: Path) -> None:
    exchange = answered(b"{}")
    exchange.aborted = True
    samples = sampling(tmp_path, Tally())
    samples.record(exchange)
    assert not samples._waiting
