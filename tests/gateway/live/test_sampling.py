"""Validation of sampled converted responses: violations are counted, and clients see nothing."""

import json
from asyncio import StreamReader, StreamWriter
from pathlib import Path

from tests.gateway.kit import Scripted, StartGateway, StartUpstream
from tests.gateway.live.bounds import metric
from tests.gateway.talk import get, soon

DOCUMENT = {
    "openapi": "3.1.0",
    "paths": {
        "/person": {
            "get": {
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {
                                "schema": {
                                    "properties": {"name": {"type": "string", "minLength": 3}}
                                }
                            }
                        }
                    }
                }
            }
        }
    },
}
RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  person:
    upstream_path: /person
    endpoints: [ {{ path: "/v{{version}}/person", version: {{ in: path }} }} ]
    versions:
      "1": {{ via: "2", schema: {schema}, check: {{ percent: 100 }} }}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        changes: [ join: {{ fields: [name.a, name.b], into: name }} ]
"""
PERSON = "GET /v1/person"


def answer(name: object) -> bytes:
    body = json.dumps({"name": name}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


async def test_violations_of_the_document_are_counted(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    document = tmp_path / "documents" / "v1.json"
    document.parent.mkdir()
    document.write_text(json.dumps(DOCUMENT))
    service = await upstream(answer({"a": "x"}))
    program = gateway(RULES.format(port=service.port, schema=document))
    for _ in range(10):
        assert (await get(program, PERSON)).body == b'{"name":"x"}'
    await soon(lambda: len(program.log("violation")) == 2)
    first, tenth = program.log("violation")
    assert (first["count"], tenth["count"]) == (1, 10)
    assert {key: first[key] for key in ("level", "api", "version", "endpoint", "field")} == {
        "level": "warning",
        "api": "person",
        "version": "1",
        "endpoint": "/v{version}/person",
        "field": "/name",
    }
    assert first["keyword"] == "minLength"
    assert b'"x"' not in program.output.read_bytes()


async def test_an_unavailable_openapi_document_is_logged_once(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(answer({"a": "x"}))
    program = gateway(RULES.format(port=service.port, schema='"http://127.0.0.1:1/v1"'))
    for _ in range(3):
        assert (await get(program, PERSON)).body == b'{"name":"x"}'
    await soon(lambda: program.log("check_failed"))
    assert (await get(program, PERSON)).body == b'{"name":"x"}'
    await soon(lambda: len(program.log("request")) == 4)
    (said,) = program.log("check_failed")
    assert (
        said["reason"]
        == "http://127.0.0.1:1/v1: cannot be loaded (connection refused); is the server running?"
    )


async def test_a_large_openapi_document_is_used(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    document = tmp_path / "v1.json"
    document.write_text(json.dumps(DOCUMENT) + " " * 8 * 2**20)
    service = await upstream(answer({"a": "x"}))
    program = gateway(RULES.format(port=service.port, schema=document))
    for _ in range(3):
        assert (await get(program, PERSON)).body == b'{"name":"x"}'
    checked = 'gateway_checked_total{api="person",version="1"}'
    await soon(lambda: metric(program, checked) == 3)
    assert program.log("violation")


PAYMENTS = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints: [ {{ path: "/v{{version}}/{{rest*}}", version: {{ in: path }} }} ]
    versions:
      "1": {{ via: "2", schema: {schema}, check: {{ percent: 100 }} }}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        operations:
          - newer: POST /v{{version}}/payments
            older: POST /v{{version}}/pay
            status: {{ newer: 201, older: 200 }}
          - newer: GET /v{{version}}/payments/p_{{id}}
            older: GET /v{{version}}/pay/{{id}}
        changes: [ rename: {{ field: name, to: title }} ]
"""


def of_title(limit: int, status: str) -> dict[str, object]:
    schema = {"properties": {"title": {"type": "string", "maxLength": limit}}}
    return {"responses": {status: {"content": {"application/json": {"schema": schema}}}}}


async def test_responses_are_validated_by_the_operation_of_the_client(
    gateway: StartGateway, upstream: StartUpstream, tmp_path: Path
) -> None:
    paths = {"/v1/pay": {"post": of_title(1, "200")}, "/v1/pay/{id}": {"get": of_title(2, "200")}}
    document = tmp_path / "v1.json"
    document.write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))

    async def serve(scripted: Scripted, reader: StreamReader, writer: StreamWriter) -> None:
        while asked := await scripted.take(reader):
            found = answer("ab" if b"p_8" in asked else "abc")
            created = asked.startswith(b"POST /v2/payments ")
            writer.write(found.replace(b"200 OK", b"201 Created") if created else found)

    service = await upstream(serve)
    program = gateway(PAYMENTS.format(port=service.port, schema=document))
    assert (await get(program, "GET /v1/pay/7")).body == b'{"title":"abc"}'
    paid = await get(program, "POST /v1/pay")
    assert (paid.status, paid.body) == (200, b'{"title":"abc"}')
    assert (await get(program, "GET /v1/pay/8")).body == b'{"title":"ab"}'
    assert (await get(program, "GET /v1/pay/7")).body == b'{"title":"abc"}'
    labels = 'api="shop"', 'version="1"'
    await soon(lambda: metric(program, f"gateway_checked_total{{{','.join(labels)}}}") == 4)
    field = f'{labels[0]},field="/title",{labels[1]}'
    await soon(lambda: metric(program, f"gateway_violations_total{{{field}}}") == 3)
    assert [line["endpoint"] for line in program.log("violation")] == ["/v{version}/{rest*}"]
