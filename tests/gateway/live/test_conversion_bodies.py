"""Converted responses over sockets: their bodies, and the header fields about the bodies."""

import gzip
import zlib

import brotli
import pytest
from backports import zstd

from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, chunked, get

LIMIT = 65536  # limits.convert of house.yaml

BOB = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'
BOB_1 = b'{"name":"Bob Charlie"}'

DOWN = {
    "as specified": (BOB, BOB_1),
    "much white space": (
        b" " * 500 + b'{"a": 1.10, "name":' + b"\n" * 500 + b"{}}",
        b'{"a":1.10,"name":""}',
    ),
    "empty": (b"{}", b"{}"),
    "any text": (
        '{"name":{"firstName":"☃\\u00e9\\ud83d\\ude00","lastName":"\\"\\\\\\/\\n\\u0000"}}'.encode(),
        '{"name":"☃é😀 \\"\\\\/\\n\\u0000"}'.encode(),
    ),
    "what is unknown stays byte for byte": (
        b'{"a":"\\u00e9\\/\\u0041","b":[ 1 , {"c" : "d"} ],"name":{"firstName":"A"}}',
        b'{"a":"\\u00e9\\/\\u0041","b":[ 1 , {"c" : "d"} ],"name":"A"}',
    ),
    "array": (b"[" + BOB + b" , " + BOB + b"]", b"[" + BOB_1 + b"," + BOB_1 + b"]"),
    "empty array": (b"[]", b"[]"),
    "nested, not too deep": (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",) * 2,
}


@pytest.mark.parametrize(("body", "expected"), DOWN.values(), ids=DOWN)
def test_join_replaces_both_fields_and_does_not_affect_the_native_version(
    house: House, body: bytes, expected: bytes
) -> None:
    house.service.answer = answer(body)
    got = get(house.gateway, "/down/v1")
    assert (got.status, got.body) == (200, expected)
    assert get(house.gateway, "/down/v2").body == body


@pytest.mark.parametrize(
    ("endpoint", "line"),
    [
        ("v1", "X: y"),
        ("param?version=1", "X: y"),
        ("header", "X-API-VERSION: 1"),
        ("accept", "Accept: application/vnd.t-v1+json"),
    ],
)
def test_a_response_is_converted_by_every_mechanism(house: House, endpoint: str, line: str) -> None:
    house.service.answer = answer(BOB)
    got = get(house.gateway, f"/down/{endpoint}", line)
    assert (got.status, got.body) == (200, BOB_1)
    assert house.service.last.line.partition(b"?")[0].startswith(b"GET /down/2")


PHONE = b'"contact":{"phone":{"kind":"none","lines":[1.5,null]}}'
UP = {
    "two parts": (
        b'{"name":"Charlie, Bob"}',
        b'{"name":{"lastName":"Charlie","firstName":"Bob"},%b}' % PHONE,
    ),
    "container there": (
        b'{"contact":{"mail":"x"},"id":1}',
        b'{"contact":{"mail":"x","phone":{"kind":"none","lines":[1.5,null]}},"id":1}',
    ),
    "null there": (b'{"contact":{"phone":null}}', b'{"contact":{"phone":null}}'),
    "array": (b'[{"name":null},{"contact":null}]', b'[{"name":null,%b},{"contact":null}]' % PHONE),
}


@pytest.mark.parametrize(("body", "expected"), UP.values(), ids=UP)
def test_split_and_default_convert_a_response_upwards(
    house: House, body: bytes, expected: bytes
) -> None:
    house.service.answer = answer(body)
    got = get(house.gateway, "/up/v2")
    assert (got.status, got.body) == (200, expected)


def test_changes_apply_to_each_element_of_nested_arrays(house: House) -> None:
    house.service.answer = answer(
        b'{"orders":[{"buyer":{"first":"A","last":"B"},"lines":[{"tax":1.0,"n":2},{"n":3}]},'
        b'{"buyer":{"first":"C"},"lines":[]},{"id":4,"lines":null}],"page":1.0}'
    )
    got = get(house.gateway, "/orders/v1")
    assert got.body == (
        b'{"orders":[{"buyer":"A B","lines":[{"n":2},{"n":3}]},'
        b'{"buyer":"C","lines":[]},{"id":4,"lines":null}],"page":1.0}'
    )


UNCONVERTIBLE = {
    "broken off": BOB[:-1],
    "broken off in a string": BOB[:20],
    "something behind": BOB + b"x",
    "a key twice": b'{"name":{"firstName":"A"},"name":{"firstName":"B"}}',
    "a key twice, one escaped": b'{"name":{"firstName":"A"},"n\\u0061me":null}',
    "comma at the end": b'{"name":{"firstName":"Bob",}}',
    "single quotes": b"{'name':{}}",
    "comment": b"{} // nothing",
    "zero in front": b'{"a":01}',
    "plus": b'{"a":+1}',
    "bare point": b'{"a":1.}',
    "bad escape": b'{"a":"\\x41"}',
    "control": b'{"a":"\n"}',
    "null byte": b'{"a":1}\0',
    "Latin-1": b'{"a":"caf\xe9"}',
    "overlong": b'{"a":"\xc0\xaf"}',
    "surrogate in UTF-8": b'{"a":"\xed\xa0\x80"}',
    "half of UTF-16": BOB.decode().encode("utf-16-le")[:-1],
    "already version 1": BOB_1,
    "name is a number": b'{"name":7}',
    "one element of many": b"[" + BOB + b"," + BOB + b',{"name":7}]',
    "deep": b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "deep objects": b'{"":' * 12_000 + b"1" + b"}" * 12_000,
    "deep arrays": b"[" * 20_000 + b"]" * 20_000,
    "deep and open": b"[" * 60_000,
    "too large": b'{"a":"%b"}' % (b"x" * LIMIT),
}


@pytest.mark.parametrize("case", UNCONVERTIBLE.values(), ids=list(UNCONVERTIBLE))
def test_a_response_that_cannot_be_converted_is_502_without_its_fields(
    house: House, case: bytes | tuple[bytes, list[str]]
) -> None:
    body, lines = case if isinstance(case, tuple) else (case, ["Content-Type: application/json"])
    lines = [*lines, 'ETag: "x"', "Set-Cookie: a=b", "Cache-Control: public"]
    house.service.answer = answer(body, *lines, content_type=None)
    got = get(house.gateway, "/down/v1")
    assert got.refusal() == (502, "conversion_failed")
    assert got.all("ETag") == got.all("Set-Cookie") == []
    assert got.one("Cache-Control") == b"no-store"
    assert "Bob" not in got.problem["detail"]
    assert get(house.gateway, "/down/v2").body == body


GZIPPED = gzip.compress(b"<a/>")
PDF = b"%PDF-1.7\n\0\xff{"
PASSED = {
    "XML": (b"<html>", ["Content-Type: application/xml"]),
    "CSV that is JSON": (BOB, ["Content-Type: text/csv"]),
    "a PDF": (PDF, ["Content-Type: application/pdf"]),
    "an image in a coding": (GZIPPED, ["Content-Type: image/svg+xml", "Content-Encoding: gzip"]),
    "bytes in a coding of its own": (PDF, ["Content-Type: a/b", "Content-Encoding: aws-chunked"]),
    "two types": (BOB, ["Content-Type: application/json", "Content-Type: text/csv"]),
    "a list of types": (BOB, ["Content-Type: application/json, text/csv"]),
    "nearly JSON": (BOB, ["Content-Type: application/jsonp"]),
    "text as JSON": (b"OK", ["Content-Type: application/json"]),
    "a page as JSON": (b"<html>", ["Content-Type: application/json"]),
    "NaN alone": (b"NaN", ["Content-Type: application/json"]),
    "NaN beside": (b'{"a":NaN,"b":[-Infinity,"NaN"]}', ["Content-Type: application/json"]),
    "text in an unknown charset": (b"\xffOK", ["Content-Type: application/json; charset=none"]),
    "JSON in an unknown coding": (PDF, ["Content-Type: application/json", "Content-Encoding: x"]),
    "coded text as JSON": (
        *(gzip.compress(b"OK"), ["Content-Type: application/json", "Content-Encoding: gzip"]),
    ),
    "text that is not in its coding": (
        *(b"OK", ["Content-Type: text/plain", "Content-Encoding: gzip"]),
    ),
    "long text": (b"x" * (LIMIT + 1), ["Content-Type: text/plain"]),
    "long text that is JSON": (b'"%b"' % (b"x" * LIMIT), ["Content-Type: text/plain"]),
}


@pytest.mark.parametrize(("body", "lines"), PASSED.values(), ids=PASSED)
def test_a_body_that_no_change_names_is_forwarded_unchanged(
    house: House, body: bytes, lines: list[str]
) -> None:
    house.service.answer = answer(body, *lines, "Digest: x=y", content_type=None)
    got = get(house.gateway, "/down/v1")
    assert (got.status, got.body) == (200, body)
    for line in lines:
        name, _, value = line.partition(": ")
        assert value.encode() in got.all(name)
    assert got.one("Digest") == b"x=y"


def test_a_partial_text_response_is_forwarded_unchanged(house: House) -> None:
    lines = ["Content-Type: text/plain", "Content-Range: bytes 0-1/100"]
    house.service.answer = answer(b"{a", *lines, status="206 Partial Content", content_type=None)
    got = get(house.gateway, "/down/v1")
    assert (got.status, got.body) == (206, b"{a")


NAMED = {
    "an unknown charset": (BOB, ["Content-Type: application/json; charset=utf8mb4"], BOB_1),
    "the name of no encoding": (BOB, ["Content-Type: application/json;charset=rot13"], BOB_1),
    "a coding that nobody knows": (
        *(BOB, ["Content-Type: application/json", "Content-Encoding: gzip, x"], BOB_1),
    ),
    "any coding": (BOB, ["Content-Type: application/json", "Content-Encoding: *"], BOB_1),
    "a charset as a coding": (
        *(BOB, ["Content-Type: application/json", "Content-Encoding: UTF-8"], BOB_1),
    ),
    "NaN beside": (
        *(BOB[:-1] + b',"a":NaN}', ["Content-Type: application/json"], BOB_1[:-1] + b',"a":NaN}'),
    ),
}


@pytest.mark.parametrize(("body", "lines", "expected"), NAMED.values(), ids=NAMED)
def test_json_is_converted_whatever_its_other_header_fields_are(
    house: House, body: bytes, lines: list[str], expected: bytes
) -> None:
    house.service.answer = answer(body, *lines, content_type=None)
    got = get(house.gateway, "/down/v1")
    assert (got.status, got.body) == (200, expected)
    assert got.all("Content-Encoding") == []


def test_a_partial_json_response_is_502_if_it_needs_conversion(house: House) -> None:
    part = answer(BOB, "Content-Range: bytes 0-48/100", status="206 Partial Content")
    house.service.answer = part
    assert get(house.gateway, "/down/v1").refusal() == (502, "conversion_failed")
    assert get(house.gateway, "/down/v2").status == 206


@pytest.mark.parametrize(
    "type_",
    [
        *("application/json", "Application/JSON", "application/json;charset=utf-8"),
        *('application/json ; Charset="UTF-8" ; a=b', "application/json;"),
        *("application/vnd.other+json", "application/hal+JSON; profile=x"),
    ],
)
def test_every_json_media_type_is_converted_and_stays_the_same(house: House, type_: str) -> None:
    house.service.answer = answer(BOB, content_type=type_)
    got = get(house.gateway, "/down/v1")
    assert (got.status, got.body) == (200, BOB_1)
    assert got.one("Content-Type") == type_.encode()
    vendor = "application/vnd.t-v1+json"
    assert get(house.gateway, "/down/accept", f"Accept: {vendor}").one("Content-Type") == (
        vendor.encode()
    )


def test_an_empty_response_is_the_same_in_every_version(house: House) -> None:
    house.service.answer = answer(b"", content_type=None)
    got = get(house.gateway, "/down/v1")
    assert (got.status, got.body) == (200, b"")
    house.service.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    assert get(house.gateway, "/down/v1").status == 204


@pytest.mark.parametrize(
    "lines",
    [["Transfer-Encoding: chunked"], ["Connection: close"], ["Content-Length: 49"]],
    ids=["chunked", "until the end", "sized"],
)
def test_a_response_is_converted_however_it_is_framed(house: House, lines: list[str]) -> None:
    body = chunked(BOB[:7], BOB[7:]) if "chunked" in lines[0] else BOB
    head = "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: application/json", *lines, "", ""])
    house.service.answer = head.encode() + body
    got = get(house.gateway, "/down/v1")
    assert (got.body, got.one("Content-Length")) == (BOB_1, b"22")


def deflated(data: bytes) -> bytes:
    """Return a raw deflate stream, which some services send as `deflate`."""
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


CODINGS = {
    "gzip": (gzip.compress(BOB), ["gzip"]),
    "deflate, bare": (deflated(BOB), ["deflate"]),
    "br": (brotli.compress(BOB), ["br"]),
    "zstd": (zstd.compress(BOB), ["zstd"]),
    "two lines": (brotli.compress(gzip.compress(BOB)), ["gzip", "br"]),
    "all": (
        zstd.compress(brotli.compress(zlib.compress(gzip.compress(BOB)))),
        ["gzip, deflate", " identity ,, br\t,zstd"],
    ),
    "just as large as allowed": (gzip.compress(b" " * (LIMIT - len(BOB)) + BOB), ["gzip"]),
}


@pytest.mark.parametrize(("body", "codings"), CODINGS.values(), ids=CODINGS)
def test_a_compressed_response_is_converted_and_sent_plain(
    house: House, body: bytes, codings: list[str]
) -> None:
    house.service.answer = answer(body, *[f"Content-Encoding: {coding}" for coding in codings])
    got = get(house.gateway, "/down/v1", "Accept-Encoding: gzip, br")
    assert (got.status, got.body) == (200, BOB_1)
    assert got.all("Content-Encoding") == []
    assert got.one("Content-Length") == b"22"
    native = get(house.gateway, "/down/v2")
    assert native.body == body
    assert native.all("Content-Encoding") == [coding.strip().encode() for coding in codings]


LARGE = b'{"a":"%b"}' % (b"x" * LIMIT)
UNDECODABLE = {
    "not gzip": (BOB, "gzip"),
    "wrong order": (brotli.compress(gzip.compress(BOB)), "br, gzip"),
    "br, broken off": (brotli.compress(BOB)[:-1], "br"),
    "gzip, something behind": (gzip.compress(BOB) + b"x", "gzip"),
    "gzip, bomb": (gzip.compress(LARGE), "gzip"),
    "deflate, bare, bomb": (deflated(LARGE), "deflate"),
    "zstd, bomb": (zstd.compress(LARGE), "zstd"),
    "bomb in a bomb": (gzip.compress(gzip.compress(b"x" * 10**7)), "gzip, gzip"),
    "bomb in pieces": (gzip.compress(b"[" * 30_000) * 3, "gzip"),
    "too many members": (gzip.compress(b"") * 2000 + gzip.compress(BOB), "gzip"),
}


@pytest.mark.parametrize(("body", "coding"), UNDECODABLE.values(), ids=UNDECODABLE)
def test_responses_with_undecodable_codings_are_502(house: House, body: bytes, coding: str) -> None:
    house.service.answer = answer(body, f"Content-Encoding: {coding}")
    assert get(house.gateway, "/down/v1").refusal() == (502, "conversion_failed")
    assert get(house.gateway, "/down/v2").body == body


NOTHING = {
    "a write": "201 Created",
    "accepted": "202 Accepted",
    "a read": "200 OK",
    "a form to clear": "205 Reset Content",
    "a part": "206 Partial Content",
    "no content": "204 No Content",
    "not modified": "304 Not Modified",
}


@pytest.mark.parametrize("status", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize(
    "lines", [[], ["Content-Encoding: gzip"], ["Content-Type: text/html"]], ids=str
)
def test_a_response_without_content_is_not_converted(
    house: House, status: str, lines: list[str]
) -> None:
    """A refusal would report a failure although the service has executed the write."""
    for kind in ("application/json", "application/x-ndjson", "text/event-stream"):
        house.service.asked.clear()
        house.service.answer = answer(b"", *lines, status=status, content_type=kind)
        got = ask(house.gateway, "POST", "/down/v1", "Content-Type: application/json", body=BOB_1)
        assert (got.status, got.body) == (int(status[:3]), b"")
        assert len(house.service.asked) == 1


ABOUT_BYTES = [
    "Digest: SHA-256=x",
    "Content-Digest: sha-256=:x:",
    "repr-digest: sha-256=:x:",
    "Content-MD5: x",
]
ABOUT_THE_REST = [
    *("Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT", "Cache-Control: max-age=60"),
    *("Set-Cookie: a=b", "Content-Language: de", "Link: </next>; rel=next", "Location: /x"),
    "X-Total: 7",
]


def test_header_fields_about_the_original_bytes_are_dropped(house: House) -> None:
    lines = *ABOUT_BYTES, *ABOUT_THE_REST, 'ETag: "v2"', "Accept-Ranges: bytes"
    house.service.answer = answer(BOB, *lines)
    got, native = get(house.gateway, "/down/v1"), get(house.gateway, "/down/v2")
    for line in ABOUT_BYTES:
        name, _, value = line.partition(": ")
        assert got.all(name) == []
        assert native.one(name) == value.encode()
    for line in ABOUT_THE_REST:
        name, _, value = line.partition(": ")
        assert got.one(name) == native.one(name) == value.encode()
    assert got.one("Content-Length") == b"22"
    assert (native.one("ETag"), native.one("Accept-Ranges")) == (b'"v2"', b"bytes")
    assert got.one("ETag").startswith(b'"v2.')
    assert got.one("Accept-Ranges") == b"none"


ASKS = [
    *('If-None-Match: "v2"', "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"),
    *("Range: bytes=0-1", 'If-Range: "v2"', "Want-Repr-Digest: sha-256=1"),
]


def test_ranges_and_codings_are_not_requested_for_a_conversion(house: House) -> None:
    house.service.answer = answer(BOB)
    got = get(house.gateway, "/down/v1", *ASKS, "Accept-Encoding: br", 'If-Match: "v2"')
    assert (got.status, got.body) == (200, BOB_1)
    for line in ASKS:
        assert house.service.last.all(line.partition(":")[0]) == []
    assert house.service.last.one("Accept-Encoding") == b"identity"
    # If-Match stays, or a guarded write would become unguarded. The tag belongs to another
    # version, so the gateway sends a tag that matches nothing.
    assert house.service.last.one("If-Match").startswith(b'"none.')

    # The If-None-Match of a write is forwarded too.
    ask(house.gateway, "PUT", "/down/v1", "If-None-Match: *", "Range: bytes=0-1")
    assert house.service.last.one("If-None-Match") == b"*"
    assert house.service.last.all("Range") == []

    get(house.gateway, "/down/v2", *ASKS, "Accept-Encoding: br")
    for line in (*ASKS, "Accept-Encoding: br"):
        name, _, value = line.partition(": ")
        assert house.service.last.one(name) == value.encode()


@pytest.mark.parametrize(
    "status",
    ["301 Moved", "304 Not Modified", "400 Bad", "404 No", "409 Taken", "500 Oh", "503 Busy"],
)
@pytest.mark.parametrize("path", ["/down/v1", "/up/v2"])
def test_unconverted_errors_are_forwarded_byte_for_byte(
    house: House, status: str, path: str
) -> None:
    for body, type_ in ((BOB, "application/json"), (b" {oops\xff", "text/html"), (b"", "a/b")):
        sent = b"" if status.startswith("304") else body
        lines = ["Retry-After: 1"]
        if not status.startswith("304"):  # a 304 describes the converted response
            lines += [*ABOUT_BYTES, "Content-Encoding: gzip", 'ETag: "v2"', "Accept-Ranges: bytes"]
        house.service.answer = answer(sent, *lines, status=status, content_type=type_)
        got = get(house.gateway, path)
        assert got.line == f"HTTP/1.1 {status}".encode()
        assert got.body == sent
        for line in lines:
            name, _, value = line.partition(": ")
            # A 304 describes a converted response, whose bytes differ from those of the service.
            passes = not status.startswith("304") or name == "Retry-After"
            assert got.all(name) == ([value.encode()] if passes else [])
        assert got.one("Content-Type") == type_.encode()


class TestNamedStatus:
    """The configuration lists 422, so bodies with this status are converted as well."""

    def test_a_named_error_status_is_converted(self, house: House) -> None:
        house.service.answer = answer(BOB, 'ETag: "x"', status="422 Wrong")
        got = get(house.gateway, "/down/v1")
        assert (got.line, got.body) == (b"HTTP/1.1 422 Wrong", BOB_1)
        assert got.all("ETag") == []

    def test_a_named_error_status_that_cannot_be_converted_is_502(self, house: House) -> None:
        house.service.answer = answer(b"{oops", status="422 Wrong")
        assert get(house.gateway, "/down/v1").refusal() == (502, "conversion_failed")

    @pytest.mark.parametrize("kind", ["text/plain", "text/html; charset=latin-1"])
    def test_a_plain_text_error_of_a_framework_is_forwarded(self, house: House, kind: str) -> None:
        house.service.answer = answer(b"oops", status="422 Wrong", content_type=kind)
        got = get(house.gateway, "/down/v1")
        assert (got.status, got.body, got.one("Content-Type")) == (422, b"oops", kind.encode())


def test_a_converted_head_response_has_no_fields_about_body_bytes(house: House) -> None:
    lines = [*ABOUT_BYTES, f"Content-Length: {len(BOB)}", "Content-Encoding: gzip"]
    house.service.answer = answer(b"", *lines, *ABOUT_THE_REST)
    got = ask(house.gateway, "HEAD", "/down/v1")
    assert got.status == 200
    assert got.one("Content-Type") == b"application/json"
    for line in lines:
        assert got.all(line.partition(":")[0]) == []
    for line in ABOUT_THE_REST:
        assert len(got.all(line.partition(":")[0])) == 1
    assert house.service.last.line.startswith(b"HEAD /down/2 ")


@pytest.mark.parametrize(("body", "named"), [(b"", False), (BOB, True)])
def test_an_empty_body_stays_empty_in_every_coding(house: House, body: bytes, named: bool) -> None:
    house.service.answer = answer(body)
    got = get(house.gateway, "/down/v1")
    assert got.status == 200
    assert ("accept-encoding" in got.members("Vary")) is named
