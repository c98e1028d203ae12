"""Streams of documents, in which text that is not JSON passes, over sockets."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.gateway.kit import DEADLINE, Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Message, answer, ask, get, request

RULES = """
services: {{ told: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    endpoints: [ {{ path: "/v{{version}}/a", version: {{ in: path }} }},
                 {{ path: "/v{{version}}/whole", version: {{ in: path }} }},
                 {{ path: "/v{{version}}/fields", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: told }} }}
    conversions:
      - between: ["1", "2"]
        changes: [ rename: {{ field: object.total, to: object.amount }},
                   rename: {{ field: total, to: amount }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/whole"]
        changes: [ extract: {{ key: data }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/fields"]
        headers: [ rename: {{ field: X-New, to: X-Old }} ]
        changes: [ to_header: {{ field: size, header: X-Size }} ]
"""
EVENTS, LINES = "text/event-stream", "application/x-ndjson"
BOM = b"\xef\xbb\xbf"
NEW, OLD = b'data: {"total":1}\n\n', b'data: {"amount":1}\n\n'


@pytest.fixture
def program(reloaded: StartGateway, house: House) -> Program:
    """Start a gateway with RULES."""
    return reloaded(RULES.format(port=house.service.port))


@pytest.mark.parametrize(
    "event",
    [
        b"data: bye\n\n",
        b"data: [DONE]\n\n",
        b"data: [1,2]\n\n",
        b"data: {oops\n\n",
        b'data: {"total":1,}\n\n',
        b"data: \xff{}\n\n",
        b'data: {"total":\xff}\n\n',
        b"data: NaN\n\n",
        b'data: "total"\n\n',
        b"data:\n\n",
        b"data\n\n",
        b"\n\n\n",
        b": a comment\r\n\r\n",
        b"retry: 10\rid: 7\revent: e\r\r",
        b'id:1\r\ndata:{"a":1,\r\ndata:"b":2}\r\nunknown: 3\r\n\r\n',
        b'data: {"b":2}\n: inside\n\n',
    ],
)
def test_an_event_that_no_change_applies_to_passes_and_the_stream_goes_on(
    program: Program, house: House, event: bytes
) -> None:
    house.service.answer = answer(NEW + event + NEW, content_type=EVENTS)
    assert get(program, "/v1/a").body == OLD + event + OLD


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (BOM + NEW, BOM + OLD),
        (BOM + b"\r\n" + NEW, BOM + b"\r\n" + OLD),
        (b'data: {"total":1}\r\r', b'data: {"amount":1}\r\r'),
        (b'data: {"total":1}', b'data: {"amount":1}'),
        (b'data: {"total":1}\r\n', b'data: {"amount":1}\r\n'),
        (b'id: 1\ndata: {\ndata: "total":1}\n', b'id: 1\ndata: {\ndata: "amount":1}\n'),
    ],
)
def test_the_bytes_around_the_data_of_an_event_stay(
    program: Program, house: House, event: bytes, expected: bytes
) -> None:
    house.service.answer = answer(event, content_type=EVENTS)
    got = get(program, "/v1/a").body
    assert got.replace(b"\ndata: ", b"").replace(b"\n", b"") == expected.replace(
        b"\ndata: ", b""
    ).replace(b"\n", b"")


@pytest.mark.parametrize("line", [b"oops", b"{oops", b"", b"  ", b"5", b"null", b'"total"', b"[1]"])
def test_a_line_that_no_change_applies_to_passes_both_ways(
    program: Program, house: House, line: bytes
) -> None:
    newer, older = (b'{"%s":1}\r\n' % name for name in (b"total", b"amount"))
    house.service.answer = answer(BOM + newer + line + b"\n" + newer, content_type=LINES)
    sent = BOM + older + line + b"\n" + older
    got = ask(program, "POST", "/v1/a", f"Content-Type: {LINES}", body=sent)
    assert (got.status, got.body) == (200, sent)
    assert house.service.last.body == BOM + newer + line + b"\n" + newer


@pytest.mark.parametrize(
    "content_type",
    [
        "application/stream+json",
        "application/json-seq",
        "application/jsonlines",
        "application/x-jsonlines",
        "application/jsonl",
        "application/x-jsonl",
        "application/x-ndjson",
        "application/ndjson",
    ],
)
def test_names_of_streams_of_documents(program: Program, house: House, content_type: str) -> None:
    house.service.answer = answer(b'{"total":1}\n{"total":2}\n', content_type=content_type)
    assert get(program, "/v1/a").body == b'{"amount":1}\n{"amount":2}\n'
    typed = f"Content-Type: {content_type}"
    assert ask(program, "POST", "/v1/a", typed, body=b'{"amount":1}\n').status == 200
    assert house.service.last.body == b'{"total":1}\n'


def test_a_json_sequence_has_separators_and_line_feeds_inside(
    program: Program, house: House
) -> None:
    """RFC 7464, section 2.1; the second text is cut off, and the next one follows it."""
    sent = b'\x1e{\n"total":1}\n\x1e{"total":\x1e{"total":"\\"}\\\\"}\n\n\x1e{"total":3}'
    house.service.answer = answer(sent, content_type="application/json-seq")
    got = get(program, "/v1/a").body
    assert [part.strip() for part in got.split(b"\x1e")][2:] == [
        b'{"total":',
        b'{"amount":"\\"}\\\\"}',
        b'{"amount":3}',
    ]
    assert json.loads(got.split(b"\x1e")[1]) == {"amount": 1}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b'{"data":[{"total":1}]}', b'[{"amount":1}]'),
        (b'{"total":1}', b'{"amount":1}'),
        (b'{"error":"late"}', b'{"error":"late"}'),
    ],
)
def test_a_change_of_the_whole_body_leaves_documents_of_another_shape(
    program: Program, house: House, given: bytes, expected: bytes
) -> None:
    house.service.answer = answer(b"data: " + given + b"\n\n", content_type=EVENTS)
    assert get(program, "/v1/whole").body == b"data: " + expected + b"\n\n"
    house.service.answer = answer(given + b"\n", content_type=LINES)
    assert get(program, "/v1/whole").body == expected + b"\n"
    house.service.answer = answer(given)
    assert get(program, "/v1/whole").status == (200 if b"data" in given else 502)


ADDED, OLDER = b'{"object":{"total":1}}\n', b'{"object":{"amount":1}}\n'
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"


def chunk(data: bytes) -> bytes:
    """Return a chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize(
    ("path", "cut"),
    [("/v1/a", 0), ("/v1/a", 5), ("/v1/a", 30), ("/v1/fields", 5), ("/v1/fields", 30)],
)
def test_a_document_of_a_watch_arrives_before_the_next_one_is_sent(
    program: Program, house: House, cut: int, path: str
) -> None:
    """Kubernetes sends a watch as JSON documents with line feeds, by `application/json`."""
    arrived = threading.Event()

    def watch(_: Message) -> Iterator[bytes]:
        yield CHUNKED + b"X-New: 1\r\n\r\n"
        yield chunk(ADDED + ADDED[:cut])
        arrived.wait(DEADLINE)
        yield chunk(ADDED[cut:] + b"\n")
        yield b"0\r\n\r\n"

    house.service.answer = watch
    with socket.create_connection(("127.0.0.1", program.port), DEADLINE) as client:
        client.sendall(request("GET", path))
        read = b""
        while OLDER not in read:
            piece = client.recv(65536)
            assert piece, read
            read += piece
        arrived.set()
        while piece := client.recv(65536):
            read += piece
    assert read.count(OLDER) == 2
    assert (b"X-Old: 1" in read) is (path == "/v1/fields")
    assert read.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b'{"total":1}\n', b'{"amount":1}'),
        (b'{\n  "total": 1,\n  "b": [\n    {}\n  ]\n}\n', None),
        (b'[\n{"total":1}\n]', None),
        (b'{"b":"\n"}', b""),
        (b'{"total":1}{"total":2}\n', b""),
        (b"{oops}\n{}\n", b""),
        (b'{"object":1}\n{}\n', b""),
        (b"<html>\n</html>\n", b""),
    ],
)
def test_one_document_has_its_length_and_is_refused_as_a_whole(
    program: Program, house: House, given: bytes, expected: bytes | None
) -> None:
    """Whether or not its service knows its length, and however it is cut."""
    cuts = (chunk(given[:9]) + chunk(given[9:]), chunk(given))
    answers: list[Any] = [answer(given), *(stream(CHUNKED + b"\r\n", cut) for cut in cuts)]
    for house.service.answer in answers:
        got = get(program, "/v1/a")
        if expected == b"":
            assert got.problem["code"] == "conversion_failed"
        else:
            assert json.loads(got.body) == json.loads(given.replace(b"total", b"amount"))
            assert got.one("Content-Length") == b"%d" % len(got.body)


def test_a_document_whose_end_comes_late_is_converted_with_its_header_fields(
    program: Program, house: House
) -> None:
    """Go's json.Encoder ends a document with a line feed; the body may end some time later."""

    def late(_: Message) -> Iterator[bytes]:
        yield CHUNKED + b"\r\n" + chunk(b'{"size":"5","total":1}\n')
        time.sleep(0.2)
        yield b"0\r\n\r\n"

    house.service.answer = late
    got = get(program, "/v1/fields")
    assert (got.json, got.one("X-Size")) == ({"amount": 1}, b"5")


def stream(head: bytes, body: bytes) -> Callable[[Message], Iterator[bytes]]:
    """Return an answer whose body comes after its head."""
    return lambda _: iter([head, body, b"0\r\n\r\n"])


def test_a_series_that_has_its_length_is_converted(program: Program, house: House) -> None:
    house.service.answer = answer(ADDED * 3)
    assert get(program, "/v1/a").body == OLDER * 3
