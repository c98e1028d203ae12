"""Faults of an operation with 5% of the requests, over sockets: each is rolled back.

One gateway has an API for each fault, so that they are tested at the same time. Among all requests,
such a fault would not be noticeable for hundreds of requests.
"""

import asyncio
import json
from itertools import count
from pathlib import Path

import pytest

from tests.gateway.kit import Scripted, StartGateway, StartUpstream
from tests.gateway.live.planted import call_until_left
from tests.gateway.live.shifting import admin, answer
from tests.gateway.talk import Reader, Writer, ask, connect

pytestmark = pytest.mark.slow

FAULTS = {
    "s422": "errors (",
    "s401": "errors (401)",
    "s404": "errors (404)",
    "s500": "errors (5xx)",
    "page": "violations (answers)",
    "hang": "errors (overdue)",
}
STATUSES = {
    "s422": "422 Unprocessable Content",
    "s401": "401 Unauthorized",
    "s404": "404 Not Found",
    "s500": "500 Internal Server Error",
}
GOOD = {"id": "s1"}
SCHEMA = {"type": "object", "required": ["id"]}


def document(folder: Path) -> str:
    body = {"responses": {"200": {"content": {"application/json": {"schema": SCHEMA}}}}}
    paths = {
        f"/{api}/{operation}": {"get": body, "post": body}
        for api in (*FAULTS, "usual")
        for operation in ("common", "rare")
    }
    (folder / "v1.json").write_text(json.dumps({"paths": paths, "openapi": "3.1.0"}))
    return str(folder / "v1.json")


def rules(old: int, new: int, schema: str) -> str:
    apis = "".join(
        f"""
  {api}:
    endpoints:
      - path: "/{api}/v{{version}}/common"
        version: {{ in: path }}
        upstream_path: /{api}/common
      - path: "/{api}/v{{version}}/rare"
        version: {{ in: path }}
        upstream_path: /{api}/rare
    versions:
      "1":
        service: old
        schema: {schema}
        cutover:
          via: "2"
          percent: 50
          sticky_by: request
          gates: {{ errors: 1%, latency: 9x, window: 30s, minimum: 10, overdue: 2s }}
      "2": {{ service: new }}
    conversions: [ {{ between: ["1", "2"], changes: [] }} ]"""
        for api in (*FAULTS, "usual")
    )
    return f"""
services:
  old: {{ targets: ["http://127.0.0.1:{old}"] }}
  new: {{ targets: ["http://127.0.0.1:{new}"] }}
apis:{apis}
"""


async def old_service(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        request = await scripted.take(reader)
        refused = b" /usual/rare " in request
        writer.write(answer(GOOD, status="404 Not Found" if refused else "200 OK"))


async def new_service(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        request = await scripted.take(reader)
        _, api, operation = request.split(b" ", 2)[1].decode().split("/")
        said = answer(GOOD)
        planted = operation == "rare" and b"X-Planted:" in request
        if planted and api in STATUSES:
            said = answer(GOOD, status=STATUSES[api])
        elif planted and api == "page":
            said = answer(b"<html>").replace(b"application/json", b"text/html")
        elif planted and api == "hang":
            await asyncio.sleep(20)
        elif operation == "rare" and api == "usual":
            said = answer(GOOD, status="404 Not Found")
        writer.write(said)


def request(api: str, operation: str, method: str = "POST", *fields: str) -> bytes:
    return ask(f"{method} /{api}/v1/{operation}", "Content-Length: 0", *fields)


async def test_a_cutover_rolls_back_a_fault_of_a_rare_operation(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    old, new = await upstream(old_service), await upstream(new_service)
    program = gateway(rules(old.port, new.port, document(tmp_path)))
    apis, turn = [*FAULTS, "usual"], count()
    async with connect(program) as client:
        for api in apis * 100:
            client.send(request(api, "rare"))
            await client.answer()
    planted = [request(api, "rare", "POST", "X-Planted: 1") for api in apis]
    found = await call_until_left(
        program,
        [request(api, "common", method) for api in apis for method in ("GET", "GET", "POST")],
        FAULTS,
        beside=lambda: planted if next(turn) % 3 == 0 else [],
    )
    assert found.keys() == FAULTS.keys()
    for api, begin in FAULTS.items():
        line = found[api]
        assert line["percent"] == 0
        assert str(line["reason"]).startswith(begin), line
        assert f"POST /{api}/v{{version}}/rare" in line["reason"]
        (exceeded, *_) = (each for each in program.log("gate_exceeded") if each["api"] == api)
        assert exceeded["new_requests"] <= 120  # only requests of this operation
    assert admin(program, "GET", "/cutovers/usual/1")[1]["state"] == "rules"
