"""Message rewriting: live requests and shadows are rewritten in the same way."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from gateway.base.mistakes import ConfigError
from gateway.conversion.chain import Conversion
from gateway.conversion.changes.rename import rename_parameter
from gateway.conversion.message import Message, QueryStep
from gateway.conversion.operation_path import OperationPath
from gateway.conversion.parameter_change import parse_query
from gateway.conversion.version_step import Direction, VersionLink
from gateway.proxy import replay, shadows
from gateway.proxy.message_conversion import planned_message
from gateway.proxy.replay import CapturedResponse
from gateway.routing.plan import Plan, plan
from gateway.versions.mechanisms.path import PathReader
from gateway.versions.version import Version
from tests.gateway.proxy.wires import Gateway
from tests.gateway.world import LAW, head, person, snapshot

MEDIA_TYPE = "application/vnd.t-v{version}+json"
READERS = {
    "path": "{ in: path }",
    "query": "{ in: query, name: version }",
    "header": "{ in: header, name: X-API-VERSION }",
    "accept": f'{{ in: accept, media_type: "{MEDIA_TYPE}" }}',
}
OLD, NEW = 1, 2
BODY = b'{"name":{"firstName":"Bob","lastName":"Charlie"},"state":"on"}'
CLIENT_BODY = b'{"name":"Bob Charlie","state":"on"}'

# Includes the name of the version header, so that changes also rename this header field.
NAMES = ("X-API-VERSION", "X-Old", "X-New", "version", "Api-Label")
FIELDS = (
    *(f"{name}: {value}" for name in NAMES for value in ("1", "a, b")),
    *("Accept-Encoding: gzip", "If-None-Match: x", "Range: bytes=0-1", "If-Match: y"),
    *("Connection: X-Old", "TE: trailers", "Cookie: a=b", "X-Forwarded-For: 203.0.113.1"),
    *("X-Shadow: 1", "X_Forwarded_For: 1", "Via: 1.1 before", f"Accept: {MEDIA_TYPE}"),
)
ANSWERED = (
    *(f"{name}: {value}" for name in NAMES for value in ("2", "b")),
    *("ETag: x", "Vary: Cookie", "Vary: *", "Connection: X-Old", "Sunset: never", "Via: 1.0 it"),
    *("Keep-Alive: 5", "X-Request-Id: theirs", "Link: </a>; rel=b", "Last-Modified: then"),
)


def change(kind: str, one: str, other: str) -> str:
    return {
        "rename": f"{{ rename: {{ field: {one}, to: {other} }} }}",
        "map": f'{{ map: {{ field: {one}, values: {{ "1": "9", "2": "8" }}, others: keep }} }}',
        "default": f'{{ default: {{ field: {one}, value: "7" }} }}',
        "remove": f'{{ remove: {{ field: {one}, value: "7" }} }}',
    }[kind]


CHANGES = st.lists(
    st.builds(
        change,
        st.sampled_from(["rename", "map", "default", "remove"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=2,
).map(", ".join)

RULES = st.fixed_dictionaries(
    {
        "reader": st.sampled_from(sorted(READERS)),
        "headers": CHANGES,
        "query": CHANGES,
        "body": st.sampled_from(
            ["", "{ join: { fields: [name.firstName, name.lastName], into: name } }"]
        ),
        "host": st.sampled_from(["client", "target", "internal.test"]),
        "default": st.sampled_from(["", ', default: "1"']),
    }
)
REQUESTS = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["GET", "HEAD", "POST", "PATCH", "DELETE"]),
        "query": st.sampled_from(
            ["", "?", "?version=1", "?X-Old=1&version=1&a=%20", "?version=1&Api-Label"]
        ),
        "fields": st.lists(st.sampled_from(FIELDS), max_size=3, unique=True),
        "version": st.sampled_from(["X-API-VERSION: 1", f"Accept: {MEDIA_TYPE}"]),
        "body": st.sampled_from([None, b"", CLIENT_BODY, b"not JSON"]),
    }
)
ANSWERS = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["200 OK", "201 Created", "204 No", "304 No", "404 No", "206 A"]),
        "fields": st.lists(st.sampled_from(ANSWERED), max_size=4, unique=True),
        "type": st.sampled_from(["application/json", "application/vnd.t-v2+json", "text/plain"]),
        "body": st.sampled_from([BODY, b"{}", b""]),
    }
)


def rules(given: dict[str, str], first: str) -> str:
    """Return a gateway.yaml in which `first` is the section of version 1."""
    path = "/v{version}/person" if given["reader"] == "path" else "/person"
    default = "" if given["reader"] == "path" else given["default"]
    reader = READERS[given["reader"]].removesuffix(" }") + default + " }"
    host = given["host"]
    return f"""
services:
  old: {{ targets: ["http://127.0.0.1:{OLD}"], host: {host} }}
  new: {{ targets: ["http://127.0.0.1:{NEW}"], host: {host} }}
apis:
  person:
    upstream_path: /person
    endpoints: [ {{ path: "{path}", version: {reader} }} ]
    versions: {{ "1": {first}, "2": {{ service: new }} }}
    conversions:
      - between: ["1", "2"]
        changes: [ {given["body"]} ]
        query: [ {given["query"]} ]
        headers: [ {given["headers"]} ]
        statuses: [404]
        {given.get("operations", "")}
"""


SHADOWED = '{ service: old, shadow: { via: "2", methods: [GET, POST, PATCH, DELETE] } }'
LIVE = '{ via: "2" }'


def request(given: dict[str, Any], reader: str) -> bytes:
    path = "/v1/person" if reader == "path" else "/person"
    lines = [
        f"{given['method']} {path}{given['query']} HTTP/1.1",
        "Host: api.test",
        given["version"],
    ]
    lines += [*given["fields"], "X-Request-Id: a-request"]
    if given["body"] is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(given['body'])}"]
    text = "\r\n".join((*lines, "", "")).replace("{version}", "1")
    return text.encode() + (given["body"] or b"")


def response(given: dict[str, Any], method: bytes) -> bytes:
    body = b"" if given["status"][:3] in ("204", "304") else given["body"]
    lines = [f"HTTP/1.1 {given['status']}", "Date: Sun, 01 Nov 2026 00:00:00 GMT"]
    lines += [*given["fields"], f"Content-Type: {given['type']}"]
    if given["status"][:3] not in ("204", "304"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode() + (b"" if method == b"HEAD" else body)


def parsed(data: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    fields = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
    return int(first.split()[1]), fields, body


async def pass_both(
    given: dict[str, str], client: dict[str, Any], service: dict[str, Any]
) -> tuple[Gateway, bytes, Gateway, list[CapturedResponse]]:
    """Send a request to service `new` twice: as a live request, and as a shadow."""

    def answer(asked: bytes) -> bytes:
        return response(service, asked.split(b" ")[0])

    seen: list[CapturedResponse] = []

    async def spy(upstream: Any, exchange: Any, plan: Any, *more: Any) -> CapturedResponse:
        got = await replay.replay(upstream, exchange, plan, *more)
        if plan.route.service.name == "new":
            seen.append(got)
        return got

    asked = request(client, given["reader"])
    live = Gateway(rules(given, LIVE), {OLD: answer, NEW: answer})
    got = await live.ask(asked)
    live.close()
    shadowed = Gateway(rules(given, SHADOWED), {OLD: answer, NEW: answer})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shadows, "replay", spy)
        await shadowed.ask(asked)
    shadowed.close()
    return live, got, shadowed, seen


@settings(LAW, max_examples=100)
@given(RULES, REQUESTS, ANSWERS)
def test_a_shadow_is_rewritten_like_a_live_request(
    given: dict[str, str], client: dict[str, Any], service: dict[str, Any]
) -> None:
    """The service gets the same bytes, except for X-Shadow, and the response is the same."""
    try:
        live, got, shadowed, seen = asyncio.run(pass_both(given, client, service))
    except ConfigError:
        reject()  # changes that contradict each other
    event(f"compared: {bool(seen)}")
    if shadowed.exchanges[0].plan is None or not seen:
        # The request was not for version 1, or its response is not compared, such as a 206.
        return
    marked = [each.replace(b"X-Shadow: 1\r\n", b"", 1) for each in shadowed.requests[NEW]]
    assert marked == live.requests[NEW]
    assert all(b"X-Shadow: 1\r\n" in each for each in shadowed.requests[NEW])
    (compared,) = seen
    status, fields, body = parsed(got)
    assert compared.status == status
    if live.exchanges[0].code is None:
        assert compared.fields == [line for line in fields if line[0] != b"Connection"]
        assert compared.body == body


PERSON = {
    "reader": "header",
    "query": "",
    "body": "",
    "host": "client",
    "default": ', default: "1"',
}
GET: dict[str, Any] = {"method": "GET", "query": "", "fields": [], "version": "A: b", "body": None}
ANSWER = {"status": "200 OK", "fields": [], "type": "application/json", "body": BODY}


@pytest.mark.parametrize(
    ("change", "sent", "arrives"),
    [
        ("rename: { field: X-API-VERSION, to: X-Old }", "X-Old: 1", b"X-API-VERSION: 2"),
        ("rename: { field: X-New, to: X-Old }", "X-Old: 1", b"X-New: 1"),
        ("default: { field: X-API-VERSION, value: '7' }", "A: b", b"X-API-VERSION: 2"),
    ],
)
async def test_the_version_in_a_request_is_written_after_the_conversion(
    change: str, sent: str, arrives: bytes
) -> None:
    """Otherwise, a renamed field could overwrite the version that the service reads."""
    given = {**PERSON, "headers": f"{{ {change} }}"}
    live, _, shadowed, _ = await pass_both(given, {**GET, "fields": [sent]}, ANSWER)
    for requests in (live.requests[NEW], shadowed.requests[NEW]):
        assert arrives in requests[0].split(b"\r\n")


async def test_the_version_in_a_response_is_written_after_the_conversion() -> None:
    given = {**PERSON, "headers": "{ rename: { field: X-New, to: X-API-VERSION } }"}
    service = {**ANSWER, "fields": ["X-New: 2"]}
    _, got, _, seen = await pass_both(given, GET, service)
    assert (b"X-API-VERSION", b"1") in parsed(got)[1]
    assert (b"X-API-VERSION", b"1") in seen[0].fields


async def test_the_version_in_the_query_is_written_after_the_conversion() -> None:
    given = {
        **PERSON,
        "reader": "query",
        "headers": "",
        "query": "{ rename: { field: version, to: v } }",
    }
    live, _, shadowed, _ = await pass_both(given, {**GET, "query": "?v=1"}, ANSWER)
    for requests in (live.requests[NEW], shadowed.requests[NEW]):
        assert requests[0].startswith(b"GET /person?version=2 ")


@pytest.mark.parametrize("status", ["204 No", "304 No"])
async def test_a_response_without_a_body_is_not_converted(status: str) -> None:
    given = {**PERSON, "headers": "", "body": "{ rename: { field: b, to: a } }"}
    service = {**ANSWER, "status": status, "type": "text/plain"}
    live, got, _, _ = await pass_both(given, GET, service)
    assert (parsed(got)[0], parsed(got)[2]) == (int(status[:3]), b"")
    assert not live.exchanges[0].converted


@pytest.mark.parametrize(("path", "varies"), [("/person", True), ("/photo", False)])
async def test_a_304_varies_by_accept_encoding_if_responses_are_converted(
    path: str, varies: bool
) -> None:
    body = "{ rename: { field: b, to: a } }"
    given = {**PERSON, "headers": "", "body": body, "operations": f'operations: ["GET {path}"]'}
    service = {**ANSWER, "status": "304 No", "fields": ['ETag: "a"']}
    _, got, _, _ = await pass_both(given, GET, service)
    assert (b"Accept-Encoding" in got) is varies


LINKS = (VersionLink(Version(1, "1"), Version(2, "2"), (), query=(rename_parameter("b", "a"),)),)
UP, DOWN = Conversion(LINKS, Direction.UP), Conversion(LINKS, Direction.DOWN)


def planned() -> Plan:
    found = plan(snapshot([person("/v{version}/person", PathReader())]), head("/v1/person"))
    assert isinstance(found, Plan)
    return found


def message(plan: Plan, status: int | None) -> Message:
    fields = [(b"X-A", b"1")]
    return planned_message(plan, "GET", "/v1/person", "a=1", {"version": "1"}, fields, status)


def test_a_message_without_a_conversion_has_no_version_steps() -> None:
    found = message(planned(), 200)
    assert (found.way.version_steps, found.back) == ((), ())
    assert (found.method, found.path, found.target) == ("GET", "/v1/person", planned().target)
    assert (found.operation, found.captures) == ("/v{version}/person", {"version": "1"})
    assert [(line.name, line.value) for line in found.headers] == [("X-A", "1")]
    assert found.query == parse_query("a=1")


def test_a_message_with_a_conversion_has_the_converted_query() -> None:
    one = planned()
    route = replace(one.route, request=UP, response=DOWN)
    request, answer = (message(one._replace(route=route), status) for status in (None, 200))
    assert request.way.service == answer.way.service == parse_query("b=1")
    assert request.back == ()
    assert [(version_step.source, version_step.target) for version_step in answer.back] == [
        (Version(2, "2"), Version(1, "1"))
    ]


def test_a_message_has_the_version_steps_of_its_operation_path() -> None:
    version_steps = (QueryStep(Version(1, "1"), Version(2, "2")),)
    operation_path = OperationPath(
        "GET", "/", None, Version(2, "2"), UP, DOWN, (), lambda _: "/", None, version_steps
    )
    assert (
        message(planned()._replace(operation_path=operation_path), None).way.version_steps
        is version_steps
    )


def test_a_copy_of_a_message_changes_independently() -> None:
    found = message(planned(), None)
    copy = found.copied()
    assert copy == found == found.given
    found.headers.clear()
    found.query.clear()
    assert copy.headers
    found.restore()
    assert (found.headers, found.query) == (copy.headers, copy.query)
