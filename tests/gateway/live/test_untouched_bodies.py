"""Bodies, and parts of bodies, that no change of a conversion names, over sockets."""

import gzip
import json

import pytest

from tests.gateway.kit import Program, StartGateway, wait_for
from tests.gateway.live.bounds import total
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, request, send

RULES = """
services: {{ told: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    endpoints: [ {{ path: "/v{{version}}/a", version: {{ in: path }} }},
                 {{ path: "/v{{version}}/cased", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: told }} }}
    conversions:
      - between: ["1", "2"]
        paths: ["/v{{version}}/a"]
        changes: [ {{ rename: {{ field: total, to: amount }} }},
                   {{ rename: {{ field: "lines[].sum", to: "lines[].cost" }} }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/cased"]
        changes: [ {{ key_case: {{ newer: camel, older: snake }} }} ]
"""
JSON = "Content-Type: application/json"


@pytest.fixture
def program(configured: StartGateway, house: House) -> Program:
    return configured(RULES.format(port=house.service.port))


@pytest.mark.parametrize("path", ["/v1/a", "/v1/cased"])
@pytest.mark.parametrize(
    "body", [b"null", b"true", b"5", b"-0", b"1.50", b'"ok"', b"[1,2,3]", b"[null]", b"[[],[1]]"]
)
def test_a_body_without_objects_is_forwarded_both_ways(
    program: Program, house: House, path: str, body: bytes
) -> None:
    """FastAPI, for example, responds to a DELETE with null."""
    house.service.answer = answer(body)
    for method in ("DELETE", "GET"):
        got = ask(program, method, path)
        assert (got.status, got.body) == (200, body)
    assert ask(program, "POST", path, JSON, body=body).status == 200
    assert house.service.last.body == body


def test_the_objects_of_a_mixed_array_are_converted(program: Program, house: House) -> None:
    house.service.answer = answer(b'[{"total":1},2,null,["x",{"total":3}]]')
    got = ask(program, "POST", "/v1/a", JSON, body=b'[1,{"amount":1}]')
    assert json.loads(got.body) == [{"amount": 1}, 2, None, ["x", {"amount": 3}]]
    assert house.service.last.body == b'[1,{"total":1}]'


def test_a_named_field_of_the_wrong_type_is_refused(program: Program, house: House) -> None:
    asked = len(house.service.asked)
    got = ask(program, "POST", "/v1/a", JSON, body=b'{"lines":5}')
    assert got.refusal() == (400, "unconvertible_request")
    assert len(house.service.asked) == asked


UNTOUCHED = {
    "white space": b' {"a": 1.50, "b" :[ 1, 2 ]}\r\n',
    "escapes": b'{"caf\\u00e9":"\\/"}',
    "repeated keys": b'{"a":1,"b":2,"a":3}',
    "opened arrays": b'[ {"lines": [{"x": 1}, {"x":2}]}, null ]\n',
    "large": b'{"lines": [%b {"x": 1}]}' % (b'{"x": [ 1.0 ]}, ' * 8000),
}
DIGESTS = ["Content-MD5: x", "Digest: x", "Repr-Digest: x=:eA==:", "Content-Digest: x=:eA==:"]
SIGNED = [*DIGESTS, "Signature: a=:eA==:", 'Signature-Input: a=("content-digest")']


@pytest.mark.parametrize("path", ["/v1/a", "/v1/cased"])
@pytest.mark.parametrize("body", UNTOUCHED.values(), ids=UNTOUCHED)
def test_an_unaltered_body_is_forwarded_byte_for_byte(
    program: Program, house: House, path: str, body: bytes
) -> None:
    for sent, lines in ((body, SIGNED), (gzip.compress(body), [*SIGNED, "Content-Encoding: gzip"])):
        house.service.answer = answer(sent, *lines)
        got = ask(program, "POST", path, JSON, *lines, body=sent)
        assert (got.status, got.body) == (200, sent)
        assert house.service.last.body == sent
        for line in lines:
            name, value = line.split(": ", 1)
            assert got.one(name) == house.service.last.one(name) == value.encode()


def test_an_unaltered_patch_is_forwarded_byte_for_byte(program: Program, house: House) -> None:
    patch = b'[ {"op": "add", "path":"/a\\/b", "value": { "x":1 }}, {"path":"/c","op":"remove"} ]\n'
    ask(program, "PATCH", "/v1/a", "Content-Type: application/json-patch+json", body=patch)
    assert house.service.last.body == patch


def test_digests_and_signatures_of_altered_bodies_are_dropped_and_counted(
    program: Program, house: House
) -> None:
    house.service.answer = answer(b'{"total":1}', *SIGNED)
    before = total(program, "gateway_dropped_digests_total")
    got = ask(program, "POST", "/v1/a", JSON, *SIGNED, body=b'{"amount":1}')
    assert got.body == b'{"amount":1}'
    for line in SIGNED:
        name = line.partition(":")[0]
        assert got.all(name) == house.service.last.all(name) == []
    # This includes trailer fields, if the client accepts trailers.
    chunks = b'b\r\n{"total":1}\r\n0\r\nRepr-Digest: x\r\nX-Took: 5\r\n\r\n'
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    house.service.answer = head + chunks
    received = send(program, request("GET", "/v1/a", "TE: trailers"))
    assert received.endswith(b'c\r\n{"amount":1}\r\n0\r\nX-Took: 5\r\n\r\n')
    house.service.answer = (head + chunks).replace(b"total", b"count")
    assert b"\r\nRepr-Digest: x\r\n" in send(program, request("GET", "/v1/a", "TE: trailers"))
    wait_for(
        lambda: total(program, "gateway_dropped_digests_total") == before + 2 * len(SIGNED) + 1
    )
