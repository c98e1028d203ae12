"""Samples of live converted answers: counted in the log, and nothing to the client."""

import json
from pathlib import Path

from tests.gateway.kit import StartGateway, StartUpstream
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


async def test_violations_are_counted(
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


async def test_a_document_that_cannot_be_had_is_said_once(
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
    assert said["reason"] == "http://127.0.0.1:1/v1: cannot be had (connection refused); is it up?"
