"""Responses of a cutover's new route that violate the document, without a shadow.

One gateway has an API for each fault, so that they are tested at the same time. The responses are
200 and 201 on both routes, except those without a body (204).
"""

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream, wait_for
from tests.gateway.live.bounds import metric
from tests.gateway.live.planted import WINDOW, call_until_left
from tests.gateway.live.shifting import admin, answer
from tests.gateway.talk import Reader, Writer, ask

pytestmark = pytest.mark.slow

SHIPMENT = {
    "type": "object",
    "required": ["id", "weight", "state"],
    "properties": {
        "id": {"type": "string"},
        "weight": {"type": "integer"},
        "state": {"enum": ["packed", "sent"]},
    },
}
GOOD = {"id": "s1", "weight": 5, "state": "sent"}
BAD = {
    "missing": ({"id": "s1", "state": "sent"}, "/weight"),
    "type": (GOOD | {"weight": "5"}, "/weight"),
    "value": (GOOD | {"state": "lost"}, "/state"),
    "pieces": (GOOD | {"weight": 1.5}, "/weight"),
    "coded": (GOOD | {"id": 1}, "/id"),
    "page": (b"<html>", "body"),
    "empty": (b"", "body"),
    "gone": (b"", "status 204"),
    "writes": (GOOD | {"weight": None}, "/weight"),
}
# These responses are forwarded unchanged: in pieces, encoded, and as a page.
UNCONVERTED = {"pieces", "coded", "page"}
CHANGE = "rename: { field: name, to: title }"
HEALTHY = ["well", "loose", "dry", "none"]


def document(folder: Path, api: str) -> str:
    """Write the document of version 1; the one of `loose` lacks a common state."""
    schema = SHIPMENT | ({"required": ["id", "color"]} if api == "loose" else {})
    body = {"content": {"application/json": {"schema": schema}}}
    operations = {"get": {"responses": {"200": body}}, "post": {"responses": {"201": body}}}
    paths = {"paths": {f"/{api}": operations}, "openapi": "3.1.0"}
    (folder / f"{api}.json").write_text(json.dumps(paths))
    return str(folder / f"{api}.json") if api != "none" else "http://127.0.0.1:1/openapi.json"


def rules(old: int, new: int, folder: Path) -> str:
    apis = "".join(
        f"""
  {api}:
    upstream_path: /{api}
    endpoints: [ {{ path: "/{api}/v{{version}}", version: {{ in: path }} }} ]
    versions:
      "1":
        service: old
        schema: {document(folder, api)}
        cutover:
          via: "2"
          percent: 50
          sticky_by: request
          gates: {{ errors: 1%, window: {WINDOW}s, dry_run: {json.dumps(api == "dry")} }}
      "2": {{ service: new }}
    conversions:
      - between: ["1", "2"]
        changes: [{CHANGE if api not in UNCONVERTED else ""}]"""
        for api in (*BAD, *HEALTHY)
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
        writer.write(answer(GOOD, status="201 Created" if b"POST" in request[:4] else "200 OK"))


async def new_service(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        request = await scripted.take(reader)
        method, target, *_ = request.split(b" ", 2)
        api, status = target.decode().strip("/"), "201 Created" if method == b"POST" else "200 OK"
        body = BAD.get(api, BAD["type"] if api in ("dry", "none") else (GOOD, ""))[0]
        if api == "writes" and method == b"GET":
            body = GOOD
        if api == "page":
            said = answer(body, status=status).replace(b"application/json", b"text/html")
        elif api == "gone":
            said = b"HTTP/1.1 204 No Content\r\n\r\n"
        elif api == "coded":
            coded = gzip.compress(json.dumps(body).encode())
            said = answer(coded, "Content-Encoding: gzip", status=status)
        else:
            said = answer(body, status=status)
        writer.write(said[:-5])
        if api in ("pieces", "page"):
            await asyncio.sleep(0.05)
        writer.write(said[-5:])


def dry_run(program: Program) -> tuple[int, set[str]]:
    dry = admin(program, "GET", "/cutovers/dry/1")[1]
    exceeded = {gate["measure"] for gate in dry["gates"] if gate["outcome"] == "exceeded"}
    return dry["percent"], exceeded


def violating(program: Program) -> tuple[str, float | None]:
    loose = admin(program, "GET", "/cutovers/loose/1")[1]
    shares = {gate["measure"]: gate["new"] for gate in loose["gates"]}
    return loose["state"], shares["answers"]


async def test_a_cutover_rolls_back_responses_that_violate_the_document(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    old, new = await upstream(old_service), await upstream(new_service)
    program = gateway(rules(old.port, new.port, tmp_path))
    requests = [
        ask(f"{method} /{api}/v1", *(() if method == "GET" else ("Content-Length: 0",)))
        for api in (*BAD, *HEALTHY)
        for method in ("GET", "GET", "POST")
    ]
    # With so many responses, only some of each API are validated.
    lines = await call_until_left(
        program,
        requests,
        BAD,
        statuses={200, 201, 204},
        until=lambda: dry_run(program) == (50, {"answers"}) and violating(program) == ("rules", 1),
    )
    found = {api: str(line["reason"]) for api, line in lines.items()}
    assert found.keys() == BAD.keys()
    for api, (_, field) in BAD.items():
        assert found[api].startswith("violations (answers)"), found[api]
        assert f"/{api}/v{{version}} {field}" in found[api]
    assert "answers to writes" in found["writes"] or "requests POST" in found["writes"]
    none = admin(program, "GET", "/cutovers/none/1")[1]
    assert {gate["new"] for gate in none["gates"] if gate["gate"] == "violations"} == {None}
    (failed,) = program.log("check_failed")
    assert failed["level"] == "info"
    assert not {line["api"] for line in program.log("violation")} - {*BAD, "dry", "loose"}
    for route in ("old", "new"):
        labels = f'{{api="loose",route="{route}",version="1"}}'

        def agree(labels: str = labels) -> bool:
            checked = metric(program, f"gateway_cutover_checked_total{labels}")
            return 0 < checked == metric(program, f"gateway_cutover_violating_total{labels}")

        wait_for(agree)  # the last responses may be validated between two scrapes
