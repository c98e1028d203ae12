"""The version in the media type of the request body, over sockets."""

import json

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream
from tests.gateway.talk import Answer, ask, connect

NEW = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'
OLD = b'{"name":"Bob Charlie"}'
V = "application/vnd.t-v{}+json".format
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
    *(V(2).encode(), len(NEW)),
    NEW,
)
RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  person:
    endpoints:
      - path: /person
        methods: [GET, POST]
        version: {{ in: content_type, media_type: "application/vnd.t-v{{version}}+json" }}
      - path: /both
        version:
          - {{ in: accept, media_type: "application/vnd.t-v{{version}}+json" }}
          - {{ in: content_type, media_type: "application/vnd.t-v{{version}}+json" }}
    versions:
      "1": {{ via: "2", lifecycle: {{ deprecated: 2020-01-01, successor: "2" }} }}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        changes: [ {{ join: {{ fields: [name.firstName, name.lastName], into: name }} }} ]
"""


@pytest.fixture
async def service(upstream: StartUpstream) -> Scripted:
    return await upstream(REPLY)


@pytest.fixture
def program(reloaded: StartGateway, service: Scripted) -> Program:
    return reloaded(RULES.format(port=service.port))


async def send(to: Program, line: str, body: bytes, *fields: str) -> Answer:
    length = (f"Content-Length: {len(body)}",) if body else ()
    async with connect(to) as client:
        client.send(ask(line, *fields, *length, body=body))
        return await client.answer(bodiless=line.startswith("HEAD"))


async def test_each_request_body_is_read_in_its_version(
    program: Program, service: Scripted
) -> None:
    new = await send(program, "POST /person", NEW, f"Content-Type: {V(2)}")
    assert (new.status, new.body, new["vary"]) == (200, NEW, "Content-Type")
    assert service.requests[-1].endswith(NEW)
    old = await send(program, "POST /person", OLD, f"content-type: {V(1)};charset=utf-8")
    assert (old.status, old.body, old["content-type"]) == (200, OLD, V(1))
    assert old["link"] == f'</person>; rel="successor-version"; title="Content-Type: {V(2)}"'
    assert f"content-type: {V(2)};charset=utf-8\r\n".encode() in service.requests[-1]
    assert service.requests[-1].endswith(NEW)


@pytest.mark.parametrize(
    ("body", "called", "code"),
    [
        (OLD, "application/json", "version_missing"),
        (OLD, V(3), "version_unknown"),
        (OLD, V("x"), "version_malformed"),
        (b"", V(1), "version_missing"),
    ],
)
async def test_a_content_type_without_a_served_version_is_415(
    program: Program, body: bytes, called: str, code: str
) -> None:
    answer = await send(program, "POST /person", body, f"Content-Type: {called}")
    problem = json.loads(answer.body)
    assert (answer.status, problem["code"]) == (415, code)
    assert answer["vary"] == "Content-Type"


async def test_two_content_types_are_a_bad_request(program: Program) -> None:
    fields = (f"Content-Type: {V(1)}", f"Content-Type: {V(2)}")
    answer = await send(program, "POST /person", OLD, *fields)
    # The parser accepts this field only once (RFC 9110, section 8.3).
    assert (answer.status, json.loads(answer.body)["code"]) == (400, "bad_request")


async def test_head_needs_a_content_type_and_options_does_not(program: Program) -> None:
    assert (await send(program, "HEAD /person", b"", f"Content-Type: {V(1)}")).status == 415
    options = await send(program, "OPTIONS /person", b"")
    assert (options.status, options["allow"]) == (204, "GET, HEAD, POST, OPTIONS")


async def test_content_type_and_accept_must_name_the_same_version(
    program: Program, service: Scripted
) -> None:
    said = f"Content-Type: {V(1)}"
    old = await send(program, "POST /both", OLD, said, f"Accept: {V(1)}")
    assert (old.body, old["content-type"]) == (OLD, V(1))
    assert old["vary"] == "Accept, Content-Type, Accept-Encoding"
    assert f"\r\nAccept: {V(2)}\r\n".encode() in service.requests[-1]
    assert (await send(program, "GET /both", b"", f"Accept: {V(1)}")).body == OLD
    conflict = await send(program, "POST /both", OLD, said, f"Accept: {V(2)}")
    assert (conflict.status, json.loads(conflict.body)["code"]) == (400, "version_conflict")
