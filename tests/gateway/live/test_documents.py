"""The document process of a running gateway: one for all workers, and never awaited."""

import asyncio
import json
import os
import signal
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.gateway.kit import DEADLINE, Program, Scripted, StartGateway, StartUpstream, children
from tests.gateway.live.bounds import metric
from tests.gateway.live.shifting import admin
from tests.gateway.talk import Reader, Writer, ask, connect, get, soon

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
MESSAGE = {"content": {"application/json": {"schema": SCHEMA}}}
ITEM = {
    "get": {"responses": {"200": MESSAGE}},
    "put": {"requestBody": MESSAGE, "responses": {"200": MESSAGE}},
}
DOCUMENT = {"openapi": "3.1.0", "paths": {"/item": ITEM}}
RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    upstream_path: /item
    endpoints: [ {{ path: "/v{{version}}/item", version: {{ in: path }} }} ]
    versions:
      "1": {{ via: "2", schema: {schema}, check: {{ percent: 100 }} }}
      "2": {{ service: s }}
    conversions: [ {{ between: ["1", "2"], additional: drop, changes: [] }} ]
"""
BODY = b'{"name":"long","new":1}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
ITEM_1 = "GET /v1/item"
CHECKED = 'gateway_checked_total{api="shop",version="1"}'
VIOLATIONS = 'gateway_violations_total{api="shop",field="/name",version="1"}'


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    (tmp_path / "documents").mkdir()
    path = tmp_path / "documents" / "v1.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def page(program: Program) -> str:
    with urlopen(f"{program.admin_url}/", timeout=60) as answer:  # noqa: S310  # this gateway
        return str(answer.read(), "utf-8")


def operations(program: Program) -> set[str]:
    return {row["operation"] for row in admin(program, "GET", "/usage")[1]["usage"]}


async def test_one_process_serves_all_workers_and_is_replaced_after_its_death(
    gateway: StartGateway, upstream: StartUpstream, schema: Path
) -> None:
    service = await upstream(ANSWER % (len(BODY), BODY))
    program = gateway(RULES.format(port=service.port, schema=schema), GATEWAY_WORKERS="2")
    await soon(lambda: len(program.log("document_loaded")) == 3)  # the supervisor, and workers
    answers = {(await get(program, ITEM_1)).body for _ in range(20)}
    assert answers == {b'{"name":"long"}'}  # `additional` applies in both workers
    await soon(lambda: metric(program, CHECKED) == metric(program, VIOLATIONS) == 20)
    (process,) = children(program, "document_child")
    assert process.nice() > 0
    process.kill()
    assert (await get(program, ITEM_1)).body == b'{"name":"long"}'
    await soon(lambda: metric(program, CHECKED) == 21)
    (ended,) = program.log("document_process_ended")
    assert ended["reason"] == f"{schema}: the document process ended by signal 9"
    async with asyncio.timeout(DEADLINE):
        while "GET /item" not in operations(program):  # a worker gets it from the process
            await get(program, ITEM_1)
    (process,) = children(program, "document_child")
    os.kill(program.process.pid, signal.SIGKILL)
    await soon(lambda: not process.is_running())


SLOW = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  hiding:
    upstream_path: /item
    endpoints: [ {{ path: "/v{{version}}/item", version: {{ in: path }} }} ]
    versions:
      "1": {{ via: "2", schema: "http://127.0.0.1:{documents}/v1.json" }}
      "2": {{ service: s }}
    conversions: [ {{ between: ["1", "2"], additional: drop, changes: [] }} ]
  merging:
    upstream_path: /item
    endpoints: [ {{ path: "/merged/v{{version}}", version: {{ in: path }} }} ]
    versions:
      "1": {{ via: "2" }}
      "2": {{ service: s, schema: "http://127.0.0.1:{documents}/v2.json" }}
    conversions: [ {{ between: ["1", "2"], writes: merge, changes: [] }} ]
"""


async def test_no_hidden_field_is_sent_before_the_first_document_is_loaded(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    published = asyncio.Event()

    async def publish(to: Scripted, reader: Reader, writer: Writer) -> None:
        await to.take(reader)
        await published.wait()
        text = json.dumps(DOCUMENT).encode()
        writer.write(ANSWER % (len(text), text))

    service = await upstream(ANSWER % (len(BODY), BODY))
    documents = await upstream(publish)
    program = gateway(SLOW.format(port=service.port, documents=documents.port))
    status, ready = await asyncio.to_thread(admin, program, "GET", "/readyz")
    assert (status, ready["reason"]) == (503, "OpenAPI documents are not loaded yet")
    put = "PUT /merged/v1", "Content-Type: application/json", "Content-Length: 0"
    for request in ((ITEM_1,), put):
        refused = await get(program, *request)
        assert (refused.status, refused["retry-after"]) == (503, "2")
        assert json.loads(refused.body)["code"] == "document_unavailable"
    assert not service.requests
    for unaffected in ("GET /v2/item", "GET /merged/v1"):
        assert (await get(program, unaffected)).body == BODY
    published.set()
    await soon(lambda: len(program.log("document_loaded")) == 2)
    assert (await asyncio.to_thread(admin, program, "GET", "/readyz"))[0] == 200
    assert (await get(program, ITEM_1)).body == b'{"name":"long"}'
    # A document at another location replaces the former one when it is loaded.
    published.clear()
    moved = SLOW.replace("v1.json", "v1b.json")
    program.reload(moved.format(port=service.port, documents=documents.port))
    assert (await get(program, ITEM_1)).body == b'{"name":"long"}'


async def test_the_process_ends_with_the_gateway(
    gateway: StartGateway, upstream: StartUpstream, schema: Path
) -> None:
    service = await upstream(ANSWER % (len(BODY), BODY))
    program = gateway(RULES.format(port=service.port, schema=schema))
    await soon(lambda: program.log("document_loaded"))
    (process,) = children(program, "document_child")
    program.process.send_signal(signal.SIGTERM)
    await soon(lambda: program.log("stopped"))
    await soon(lambda: not process.is_running())


async def test_a_reload_never_fails_because_of_a_document(
    gateway: StartGateway, upstream: StartUpstream, schema: Path
) -> None:
    service = await upstream(ANSWER % (len(BODY), BODY))
    program = gateway(RULES.format(port=service.port, schema=schema))
    await soon(lambda: program.log("document_loaded"))
    await asyncio.to_thread(schema.write_text, "{")
    program.reload(RULES.format(port=service.port, schema=schema) + "# again\n")
    assert not program.log("config_rejected")
    # The compiled document stays in use.
    assert (await get(program, ITEM_1)).body == b'{"name":"long"}'
    await soon(lambda: "Document unusable" in page(program))
    assert "No message is validated against it" in page(program)
    changed = json.dumps(DOCUMENT).replace('"name"', '"new"')
    await asyncio.to_thread(schema.write_text, changed)
    program.reload(RULES.format(port=service.port, schema=schema))
    await soon(lambda: len(program.log("document_loaded")) == 2)
    assert (await get(program, ITEM_1)).body == b'{"new":1}'
    assert "Document unusable" not in page(program)


SHADOW = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    upstream_path: /item
    endpoints: [ {{ path: "/v{{version}}/item", version: {{ in: path }} }} ]
    versions:
      "1": {{ service: s, shadow: {{ via: "2", percent: 100, validate: true }} }}
      "2": {{ service: s, schema: {schema} }}
    conversions: [ {{ between: ["1", "2"], changes: [] }} ]
"""


async def test_the_first_writes_after_a_start_are_validated(
    gateway: StartGateway, upstream: StartUpstream, schema: Path
) -> None:
    """They wait until the document process has started."""
    service = await upstream(ANSWER % (len(BODY), BODY))
    configuration = SHADOW.format(port=service.port, schema=schema)
    program = gateway(configuration, GATEWAY_SHADOW_LOAD="1")
    fields = ("Content-Type: application/json", f"Content-Length: {len(BODY)}")

    async def write() -> None:
        async with connect(program) as client:
            client.send(ask("PUT /v1/item", *fields, body=BODY))
            assert (await client.answer()).status == 200

    await asyncio.gather(*(write() for _ in range(40)))
    invalid = 'gateway_invalid_total{api="shop",version="1"}'
    await soon(lambda: metric(program, invalid) == 40)
