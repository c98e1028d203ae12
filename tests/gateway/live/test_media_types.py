"""Conversion of JSON with other media types and encodings, over sockets."""

import gzip

import pytest

from tests.gateway.kit import Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import ask, get

RULES = """
services: {{ told: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    endpoints:
      - {{ path: "/v{{version}}/a", version: {{ in: path }} }}
      - path: "/v{{version}}/declared"
        version: {{ in: path }}
        media_types: {{ text/csv: json, "text/*": pass, application/log: json_lines, none: pass }}
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: told }} }}
    conversions:
      - between: ["1", "2"]
        changes: [ {{ rename: {{ field: total, to: amount }} }},
                   {{ map: {{ field: state, values: {{ OPEN: "offen €" }} }} }} ]
"""
NEWER = '{"total":1,"é":"é"}'
OLDER = '{"amount":1,"é":"é"}'
TYPED = "Content-Type: application/json"
TYPES = {
    "a byte order mark": (TYPED, "utf-8-sig"),
    "text/json": ("Content-Type: text/json", "utf-8"),
    "a script that is JSON": ("Content-Type: application/x-javascript", "utf-8"),
    "any suffix": ("Content-Type: text/vnd.x+json", "utf-8"),
    "no type": ("X-A: b", "utf-8"),
    "an empty type": ("Content-Type:", "utf-8"),
    "text": ("Content-Type: text/plain;charset=UTF-8", "utf-8"),
    "the default of PHP": ("Content-Type: text/html; charset=UTF-8", "utf-8"),
    "latin-1": (f"{TYPED}; charset=ISO-8859-1", "latin-1"),
    "quoted": (f'{TYPED}; charset="windows-1252"', "cp1252"),
    "another alphabet": (f"{TYPED}; charset=GBK", "gbk"),
    "utf8": (f"{TYPED}; charset=utf8", "utf-8"),
    "UTF-16 with a mark": (f"{TYPED}; charset=utf-16", "utf-16"),
    "UTF-16 without a mark": (TYPED, "utf-16-be"),
    "UTF-32 with a mark": (TYPED, "utf-32"),
    "UTF-32 without a mark": (f"{TYPED}; charset=utf-32le", "utf-32-le"),
}


@pytest.fixture
def program(configured: StartGateway, house: House) -> Program:
    return configured(RULES.format(port=house.service.port))


@pytest.mark.parametrize(("line", "codec"), TYPES.values(), ids=TYPES)
def test_json_is_converted_under_any_name_and_sent_in_its_encoding(
    program: Program, house: House, line: str, codec: str
) -> None:
    """The media type of the sender is unchanged."""
    house.service.answer = typed(NEWER.encode(codec), line)
    got = ask(program, "POST", "/v1/a", line, body=OLDER.encode(codec))
    sent = "utf-8" if codec == "utf-8-sig" else codec  # without a byte order mark
    assert (got.status, got.body.decode(sent)) == (200, OLDER)
    assert house.service.last.body.decode(sent) == NEWER
    types = [] if line.startswith("X-A") else [line.partition(":")[2].strip().encode()]
    assert got.all("Content-Type") == house.service.last.all("Content-Type") == types


@pytest.mark.parametrize(("line", "codec"), TYPES.values(), ids=TYPES)
def test_an_unaltered_body_keeps_its_bytes_in_any_encoding(
    program: Program, house: House, line: str, codec: str
) -> None:
    for text in ('{"é": [ 1 ]} ', "5", "null"):
        body = text.encode(codec)
        house.service.answer = typed(body, line)
        assert ask(program, "POST", "/v1/a", line, body=body).body == body
        assert house.service.last.body == body


def test_a_character_that_an_encoding_lacks_is_an_escape(program: Program, house: House) -> None:
    line = f"{TYPED}; charset=iso-8859-1"
    house.service.answer = typed('{"state":"OPEN","é":"ü"}'.encode("latin-1"), line)
    assert get(program, "/v1/a").body == '{"state":"offen \\u20ac","é":"ü"}'.encode("latin-1")


def test_a_large_body_is_converted_in_its_encoding(program: Program, house: House) -> None:
    line = f"{TYPED}; charset=utf-16"
    text = '{"x":"%s","total":1}' % ("é€😀" * 40_000)
    house.service.answer = typed(
        gzip.compress(text.encode("utf-16")), line, "Content-Encoding: gzip"
    )
    assert get(program, "/v1/a").body.decode("utf-16") == text.replace("total", "amount")


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("Content-Type: text/plain", b"OK"),
        ("Content-Type: text/html; charset=iso-8859-1", b"<p>\xe9</p>"),
        ("Content-Type: text/html; charset=klingon", b"[INFO] done"),
        ("X-A: b", b"OK"),
    ],
)
def test_invalid_json_is_forwarded_in_responses_and_refused_in_requests(
    program: Program, house: House, line: str, body: bytes
) -> None:
    """A service that responds has already acted. A request may contain fields to convert."""
    house.service.answer = typed(body, line, "Repr-Digest: x")
    got = ask(program, "POST", "/v1/a", TYPED, body=b"{}")
    assert (got.status, got.body, got.one("Repr-Digest")) == (200, body, b"x")
    asked = len(house.service.asked)
    assert ask(program, "POST", "/v1/a", line, body=body).refusal() == (
        415,
        "unsupported_media_type",
    )
    assert len(house.service.asked) == asked


@pytest.mark.parametrize(
    ("line", "body"),
    [
        (f"{TYPED}; charset=klingon", b"{oops}"),
        (f"{TYPED}; charset=us-ascii", b'{"a":"\xe9"}'),
        (TYPED, b"\xff\xfe{\0}"),
    ],
)
def test_a_body_in_an_unreadable_encoding_is_refused(
    program: Program, house: House, line: str, body: bytes
) -> None:
    house.service.answer = typed(body, line)
    assert get(program, "/v1/a").refusal() == (502, "conversion_failed")
    asked = len(house.service.asked)
    assert ask(program, "POST", "/v1/a", line, body=body).status in (400, 415)
    assert len(house.service.asked) == asked


def test_the_configuration_sets_how_a_media_type_is_read(program: Program, house: House) -> None:
    lines = b'{"total":1}\n{"total":2}\n'
    for line, body, expected in (
        ("Content-Type: text/csv", NEWER.encode(), OLDER.encode()),
        ("Content-Type: text/plain", NEWER.encode(), NEWER.encode()),
        ("Content-Type: application/log", lines, lines.replace(b"total", b"amount")),
        ("X-A: b", NEWER.encode(), NEWER.encode()),
    ):
        house.service.answer = typed(body, line)
        got = ask(program, "POST", "/v1/declared", line, body=expected)
        assert (got.status, got.body, house.service.last.body) == (200, expected, body)


def typed(body: bytes, *lines: str) -> bytes:
    head = ["HTTP/1.1 200 OK", *lines, f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
