"""Faulty new routes of cutovers, over sockets: each is rolled back in time, with the reason.

One gateway has an API for each fault, so that they are tested at the same time. Some requests read
and others write; only writes are refused, so the reason may count only writes or their operation.
"""

import asyncio
import http.client
import json
from collections.abc import Collection

import pytest

from tests.gateway.kit import Scripted, StartGateway, StartUpstream
from tests.gateway.live.planted import WINDOW, call_until_left
from tests.gateway.live.shifting import NEW, OLD, WRONG, admin, answer
from tests.gateway.talk import Reader, Writer, ask

pytestmark = pytest.mark.slow

GATES = f"errors: 2%, latency: 1.5x, window: {WINDOW}s, minimum: 10"

STATUSES = {
    "s422": "422 Unprocessable Content",
    "s400": "400 Bad Request",
    "s403": "403 Forbidden",
    "s404": "404 Not Found",
    "s500": "500 Internal Server Error",
    "held": "422 Unprocessable Content",
}
REASONS = {
    "s422": "errors (other 4xx)",
    "s400": "errors (other 4xx)",
    "s403": "errors (403)",
    "s404": "errors (404)",
    "s500": "errors (5xx)",
    "unfit": "errors (conversion)",
    "fields": "errors (conversion)",
    "slow": "latency",
    "hang": "errors (overdue)",
    "differs": "differences",
}
HEALTHY = ["usual", "dry"]


def rules(old: int, new: int, chosen: Collection[str]) -> str:
    apis = []
    for api in chosen:
        shadow, gates = "", GATES
        if api == "differs":
            shadow = 'shadow: { via: "2" }'
            gates = f"differences: 2%, window: {WINDOW}s, minimum: 10"
        if api == "dry":
            gates += ", dry_run: true"
        if api == "held":
            gates += ", then: hold"
        apis.append(
            f"""
  {api}:
    upstream_path: /{api}
    endpoints: [ {{ path: "/{api}/v{{version}}", version: {{ in: path }} }} ]
    versions:
      "1":
        service: old
        cutover: {{ via: "2", percent: 50, sticky_by: request, gates: {{ {gates} }} }}
        {shadow}
      "2": {{ service: new }}
    conversions:
      - between: ["1", "2"]
        changes: [ {{ join: {{ fields: [name.firstName, name.lastName], into: name }} }} ]"""
        )
    return f"""
services:
  old: {{ targets: ["http://127.0.0.1:{old}"] }}
  new: {{ targets: ["http://127.0.0.1:{new}"] }}
apis:{"".join(apis)}
"""


async def old_service(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        request = await scripted.take(reader)
        refused = b"/usual" in request and len(scripted.requests) % 4 == 0
        writer.write(answer({"oh": 1}, status="404 Not Found") if refused else OLD)


async def new_service(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        request = await scripted.take(reader)
        method, target, *_ = request.split(b" ", 2)
        api = target.decode().strip("/")
        said = NEW
        if api in STATUSES and method == b"POST":
            said = answer({"oh": 1}, status=STATUSES[api])
        elif api == "dry" or (api == "usual" and len(scripted.requests) % 4 == 0):
            said = answer({"oh": 1}, status="404 Not Found")
        elif api == "fields" and method == b"POST":
            said = answer({"name": {"firstName": 7, "lastName": "Charlie"}})
        elif api == "differs":
            said = WRONG
        elif api == "slow":
            await asyncio.sleep(0.3)
        elif api == "hang":
            await asyncio.sleep(20)
        writer.write(said)


def request(api: str, method: str) -> bytes:
    if method == "GET":
        return ask(f"GET /{api}/v1")
    body = json.dumps({"name": 7 if api == "unfit" else "Bob Charlie"}).encode()
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    return ask(f"POST /{api}/v1", *fields, body=body)


# On a shared machine, a delay is only measurable with little other traffic.
@pytest.mark.parametrize(
    "faults", [REASONS.keys() - {"slow"}, {"slow"}], ids=["refused or wrong", "slow"]
)
async def test_a_cutover_rolls_back_each_planted_fault(
    gateway: StartGateway, upstream: StartUpstream, faults: set[str]
) -> None:
    old, new = await upstream(old_service), await upstream(new_service)
    apis = [*faults, *HEALTHY, "held"]
    program = gateway(rules(old.port, new.port, apis))
    steady = [api for api in apis if api != "hang"]
    found = await call_until_left(
        program,
        [request(api, method) for api in steady for method in ("GET", "POST", "POST")],
        faults,
        beside=lambda: [request("hang", "POST")] * 3 if "hang" in faults else [],
        until=lambda: bool(program.log("cutover_held")),
    )
    assert found.pop("held")["percent"] == 50
    assert found.keys() == faults
    for api in faults:
        line, reason = found[api], REASONS[api]
        assert line["percent"] == 0
        assert str(line["reason"]).startswith(reason), line
        exceeded = {
            each["measure"]: each for each in program.log("gate_exceeded") if each["api"] == api
        }
        measure = reason.partition("(")[2].rstrip(")") or ("mean" if api == "slow" else "share")
        assert exceeded[measure]["new"] > (exceeded[measure]["old"] or 0)
        assert (exceeded[measure]["window"] > 0, exceeded[measure]["dry_run"]) == (True, False)
    status, stands = admin(program, "GET", "/cutovers/held/1")
    assert (status, stands["percent"], stands["state"], stands["then"]) == (200, 50, "held", "hold")
    (line,) = program.log("cutover_held")
    assert line["reason"] == stands["why"]
    assert stands["why"].startswith("errors (")
    status, stands = admin(program, "GET", "/cutovers/dry/1")
    assert (status, stands["percent"], stands["state"], stands["then"]) == (200, 50, "rules", None)
    measures = {gate["measure"] for gate in stands["gates"] if gate["outcome"] == "exceeded"}
    assert measures == {"404"}
    assert {line["dry_run"] for line in program.log("gate_exceeded") if line["api"] == "dry"} == {
        True
    }
    assert admin(program, "GET", "/cutovers/usual/1")[1]["state"] == "rules"
    connection = http.client.HTTPConnection("127.0.0.1", program.admin, timeout=60)
    try:
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read().decode()
    finally:
        connection.close()
    labels = 'api="dry",gate="errors",measure="404"'
    assert f'gateway_gate_limit{{{labels},version="1"}} 0.02' in metrics
    assert f'gateway_gate_value{{{labels},route="old",version="1"}} 0.0' in metrics
    for name in ("gateway_gate_requests", "gateway_gate_matching_requests"):
        for route in ("old", "new"):
            assert f'{name}{{{labels},route="{route}",version="1"}} ' in metrics
    assert f'gateway_gate_window_seconds{{{labels},version="1"}} ' in metrics
    value = metrics.partition(f'gateway_gate_value{{{labels},route="new",version="1"}} ')[2]
    assert float(value.split()[0]) > 0.9
    assert f'gateway_gate_outcome{{{labels},outcome="exceeded",version="1"}} 1' in metrics
    labels = 'api="dry",outcome="404",route="new",version="1"'
    assert f"gateway_cutover_outcomes_total{{{labels}}}" in metrics
