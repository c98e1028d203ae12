"""Random bytes of clients and services: the response is complete HTTP and never a 500."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get, parse_answer, request, send

bounded = settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(autouse=True)
def unharmed(house: House) -> Iterator[None]:
    yield
    assert house.gateway.process.poll() is None
    events = {entry["event"] for entry in house.gateway.log()}
    # Responses that are not HTTP count as failures of the target.
    assert events - {"target_failing", "target_recovered"} == {"listening", "request"}


METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "PATCH"])
PATHS = st.sampled_from(
    [
        *("/plain", "/tail/", "/native/v1", "/native/param", "/native/header", "/native/accept"),
        *("/native/any", "/down/v1", "/up/v2", "/orders/v1", "/real/down/v1", "/real/up/v2"),
        *("/users", "/users/1", "/gone/accept", "*", "http://a", "//"),
    ]
)
VERSIONS = st.sampled_from(["1", "2", "3", "", "%31", "\N{ARABIC-INDIC DIGIT ONE}", "v1", "1,2"])
ODD = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=12)
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)
NAMES = st.sampled_from(
    [
        *("X-API-VERSION", "Accept", "Content-Type", "Content-Encoding", "Expect", "Range"),
        *("If-None-Match", "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host"),
        *("X-Request-Id", "Connection", "Upgrade", "TE", "Trailer", "Cookie", "Host", "Keep-Alive"),
        *("HTTP2-Settings", "Accept-Encoding"),
    ]
)
MEDIA = st.builds("application/vnd.t-v{}+json{}".format, VERSIONS, ODD)
VALUES = st.one_of(
    VERSIONS,
    ODD,
    MEDIA,
    st.lists(MEDIA, max_size=4).map(", ".join),
    st.sampled_from(["application/json", "gzip", "br, gzip", "100-continue", "websocket", "close"]),
)
LINES = st.lists(st.builds("{}:{}".format, st.one_of(NAMES, PRINTABLE), VALUES), max_size=6)
TARGETS = st.builds(
    "{}{}{}".format,
    PATHS,
    st.one_of(st.just(""), PRINTABLE, st.sampled_from(["/", "/..", "/%2e", "%", "#", ";"])),
    st.one_of(st.just(""), st.builds("?version={}".format, VERSIONS), PRINTABLE),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "firstName", "lastName", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
FRAMING = ("content-length", "transfer-encoding")


@bounded
@given(METHODS, TARGETS, LINES, st.one_of(st.none(), st.binary(max_size=30), JSON.map(json.dumps)))
def test_no_random_request_gets_a_500(
    house: House, method: str, target: str, lines: list[str], body: bytes | str | None
) -> None:
    lines = [line for line in lines if not line.lower().startswith(FRAMING)]
    content = body.encode() if isinstance(body, str) else body
    data = request(method, target, *lines, body=content)
    received = send(house.gateway, data)
    # The method of an unreadable request is unknown, so even HEAD gets a refusal with a body.
    unread = b'"code":"bad_request"' in received
    got = parse_answer(received, "GET" if unread else method)
    assert got.status != 500


@bounded
@given(st.binary(max_size=60))
def test_random_bytes_are_a_bad_request(house: House, data: bytes) -> None:
    # Without a request line, the bytes cannot be the beginning of an incomplete request.
    received = send(house.gateway, b"\x01" + data + b"\r\n\r\n")
    assert parse_answer(received).refusal() == (400, "bad_request")


REFUSED = object()


def joined(document: Any) -> Any:
    if isinstance(document, list):
        elements = [joined(element) for element in document]
        return REFUSED if any(element is REFUSED for element in elements) else elements
    if not isinstance(document, dict) or document.get("name") is None:
        return document
    name = document["name"]
    if not isinstance(name, dict):
        return REFUSED
    parts = [name.get("firstName"), name.get("lastName")]
    if not all(part is None or isinstance(part, str) for part in parts):
        return REFUSED
    return {**document, "name": " ".join(part for part in parts if part)}


@bounded
@given(JSON | st.fixed_dictionaries({"name": JSON, "x": JSON}), st.booleans(), st.integers(0, 40))
def test_a_random_document_is_joined_or_refused(
    house: House, document: Any, ascii_: bool, indent: int
) -> None:
    body = json.dumps(document, ensure_ascii=ascii_, indent=indent or None)
    house.service.answer = answer(body.encode())
    got = get(house.gateway, "/down/v1")
    expected = joined(document)
    if expected is REFUSED:
        assert got.refusal() == (502, "conversion_failed")
    else:
        assert (got.status, got.json) == (200, expected)


@bounded
@given(
    st.sampled_from([200, 201, 204, 206, 299, 304, 400, 422, 500, 599]),
    LINES,
    st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(["/plain", "/down/v1", "/up/v2", "/native/accept"]),
    st.sampled_from(["GET", "HEAD"]),
)
def test_a_random_response_is_forwarded_or_is_502(
    house: House, status: int, lines: list[str], body: bytes, path: str, method: str
) -> None:
    lines = [line for line in lines if not line.lower().startswith(FRAMING)]
    if method == "HEAD" or status in (204, 304):
        lines.append(f"Content-Length: {len(body)}")
        body = b""
    house.service.answer = answer(body, *lines, status=f"{status} X", content_type=None)
    got = ask(house.gateway, method, path, "Accept: application/vnd.t-v1+json")
    assert got.status in (status, 502)
    if got.status == 502 and method == "GET":
        assert got.problem["code"] in ("conversion_failed", "upstream_protocol")
