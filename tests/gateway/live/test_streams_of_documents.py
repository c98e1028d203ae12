"""Streams of documents, in which text that is not JSON is forwarded unchanged, over sockets."""

import gzip
import json
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import brotli
import pytest

from tests.gateway.kit import DEADLINE, Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Answer, Message, answer, ask, get, parse_answer, request

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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
def program(configured: StartGateway, house: House) -> Program:
    return configured(RULES.format(port=house.service.port))


@pytest.mark.parametrize(
    "event",
    [
        *(b"data: bye\n\n", b"data: [DONE]\n\n", b"data: [1,2]\n\n", b"data: {oops\n\n"),
        *(b'data: {"total":1,}\n\n', b"data: \xff{}\n\n", b'data: {"total":\xff}\n\n'),
        *(b"data: NaN\n\n", b'data: "total"\n\n', b"data:\n\n", b"data\n\n", b"\n\n\n"),
        *(b": a comment\r\n\r\n", b"retry: 10\rid: 7\revent: e\r\r"),
        b'id:1\r\ndata:{"a":1,\r\ndata:"b":2}\r\nunknown: 3\r\n\r\n',
        b'data: {"b":2}\n: inside\n\n',
    ],
)
def test_an_event_without_changes_is_forwarded_and_the_stream_continues(
    program: Program, house: House, event: bytes
) -> None:
    house.service.answer = answer(NEW + event + NEW, content_type=EVENTS)
    assert get(program, "/v1/a").body == OLD + event + OLD


@pytest.mark.parametrize("line", [b"oops", b"{oops", b"", b"  ", b"5", b"null", b'"total"', b"[1]"])
def test_a_line_without_changes_is_forwarded_both_ways(
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
        *("application/stream+json", "application/json-seq", "application/jsonlines"),
        *("application/x-jsonlines", "application/jsonl", "application/x-jsonl"),
        *("application/x-ndjson", "application/ndjson"),
    ],
)
def test_every_media_type_of_a_document_stream_is_converted(
    program: Program, house: House, content_type: str
) -> None:
    house.service.answer = answer(b'{"total":1}\n{"total":2}\n', content_type=content_type)
    assert get(program, "/v1/a").body == b'{"amount":1}\n{"amount":2}\n'
    typed = f"Content-Type: {content_type}"
    assert ask(program, "POST", "/v1/a", typed, body=b'{"amount":1}\n').status == 200
    assert house.service.last.body == b'{"total":1}\n'


def test_a_json_sequence_has_separators_and_line_feeds_inside(
    program: Program, house: House
) -> None:
    """The second text is cut off, and the next one follows it (RFC 7464, section 2.1)."""
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
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize(
    ("path", "cut"),
    [("/v1/a", 0), ("/v1/a", 5), ("/v1/a", 30), ("/v1/fields", 5), ("/v1/fields", 30)],
)
def test_a_document_of_a_watch_is_forwarded_before_the_next_one_is_sent(
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
        (b'{"object":true}\n{}\n', b""),
    ],
)
def test_a_single_document_has_a_length_and_is_refused_as_a_whole(
    program: Program, house: House, given: bytes, expected: bytes | None
) -> None:
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
    return lambda _: iter([head, body, b"0\r\n\r\n"])


def test_a_series_that_has_its_length_is_converted(program: Program, house: House) -> None:
    house.service.answer = answer(ADDED * 3)
    assert get(program, "/v1/a").body == OLDER * 3


def in_turn(
    program: Program, house: House, head: bytes, *steps: tuple[bytes, bytes], path: str = "/v1/a"
) -> Answer:
    """Return a response whose parts the service sends one after the other.

    Each part follows after the client has received the previous one.

    Args:
        head: the head of the service's response, without a length.
        steps: pairs of what the service sends and what the client receives before the next step.
    """
    arrived = threading.Semaphore(0)

    def paced(_: Message) -> Iterator[bytes]:
        yield head
        for piece, _expected in steps:
            if piece:
                yield chunk(piece)
            assert arrived.acquire(timeout=DEADLINE)
        yield b"0\r\n\r\n"

    house.service.answer = paced
    with socket.create_connection(("127.0.0.1", program.port), DEADLINE) as client:
        client.sendall(request("GET", path))
        read = b""
        for _, expected in steps:
            while expected not in read:
                received = client.recv(65536)
                assert received, read
                read += received
            arrived.release()
        while received := client.recv(65536):
            read += received
    return parse_answer(read)


def head_of(content_type: str | None, *lines: str) -> bytes:
    typed = [] if content_type is None else [f"Content-Type: {content_type}"]
    fields = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", *typed, *lines]
    return "\r\n".join([*fields, "", ""]).encode()


@pytest.mark.parametrize("content_type", ["text/plain", "text/html; charset=latin-1", None])
@pytest.mark.parametrize(
    "lines",
    [
        (b"I0101 starting\n", b"I0102 started\n"),
        (b"2026-01-01T00:00:00Z up\n", b"2026-01-01T00:00:09Z down\n"),
        (b"127.0.0.1 - - [1]\n", b"::1 - - [2]\n"),
        (b"[INFO] {\n", b"[WARN] }\n"),
        (b"[2026-01-01 12:00] a\n", b"[2026-01-01 12:01] b\n"),
        (b'{"total":1}\n{"total":2}\n', b'{"total":3}\n'),
        (b'"total" is 1\n', b"more\n"),
        (b"true\nfalse", b"null\n"),
        (b"\n\n caf\xc3", b"\xa9\n"),
        (b"...", b"::::"),
        (b"{oops\n", b"{oops again\n"),
        (b"...\n" + b"x" * 2_000_000, b"end"),
    ],
    ids=lambda lines: lines[0][:9],
)
def test_non_json_text_is_forwarded_as_it_arrives(
    program: Program, house: House, content_type: str | None, lines: tuple[bytes, bytes]
) -> None:
    got = in_turn(program, house, head_of(content_type), *((line, line[-9:]) for line in lines))
    assert got.body == b"".join(lines)


@pytest.mark.parametrize(
    ("text", "passed"), [(b'{"total":1}\n', b'{"amount":1}'), (b"[1]", b"[1]"), (b"5\n", b"5")]
)
def test_text_that_only_begins_as_json_is_not_buffered(
    program: Program, house: House, text: bytes, passed: bytes
) -> None:
    got = in_turn(program, house, head_of("text/plain"), (text, passed), (b" later", b"later"))
    assert got.body.replace(b"\n", b"") == passed + b" later"


@pytest.mark.parametrize("text", [b"ok", b"ok\n" * 100_000])
@pytest.mark.parametrize("content_type", ["text/plain", None])
def test_header_fields_of_non_json_text_are_converted(
    program: Program, house: House, content_type: str | None, text: bytes
) -> None:
    house.service.answer = answer(text, "X-New: 1", content_type=content_type)
    got = get(program, "/v1/fields")
    assert (got.one("X-Old"), got.all("X-New"), got.body) == (b"1", [], text)
    assert got.one("Content-Length") == b"%d" % len(text)


def test_non_json_text_keeps_its_length_and_coding(program: Program, house: House) -> None:
    text = b"a,b\n" * 300_000
    for body, *lines in ((text,), (gzip.compress(text), "Content-Encoding: gzip")):
        house.service.answer = answer(body, *lines, content_type="text/plain")
        got = get(program, "/v1/a")
        assert (got.body, got.one("Content-Length")) == (body, b"%d" % len(body))
        assert len(got.all("Content-Encoding")) == len(lines)


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-32"])
def test_json_sent_as_text_is_converted_in_any_segments(
    program: Program, house: House, encoding: str, coded: bool
) -> None:
    text = json.dumps({"total": 1, "x": "y" * 100_000}).encode(encoding)
    body = gzip.compress(text) if coded else text
    head = head_of("text/plain", *(["Content-Encoding: gzip"] if coded else []))

    def cut(_: Message) -> Iterator[bytes]:
        yield head
        for each in (body[:1], body[1:2], body[2:7], body[7:]):
            yield chunk(each)
            time.sleep(0.01)
        yield b"0\r\n\r\n"

    house.service.answer = cut
    got = get(program, "/v1/a")
    assert json.loads(got.body) == {"amount": 1, "x": "y" * 100_000}
    assert got.all("Content-Encoding") == []


@pytest.mark.parametrize(
    ("content_type", "sent", "expected"),
    [
        (EVENTS, NEW, OLD),
        (LINES, b'{"total":1}\n', b'{"amount":1}\n'),
        ("application/json", ADDED, OLDER),
        ("text/plain", b"first line\n", b"first line\n"),
        (None, b'{"total":1}', b'{"amount":1}'),
    ],
)
@pytest.mark.parametrize("coded", [False, True])
def test_the_head_arrives_before_the_first_document_is_sent(
    program: Program,
    house: House,
    content_type: str | None,
    sent: bytes,
    expected: bytes,
    coded: bool,
) -> None:
    head = head_of(content_type, *(["Content-Encoding: gzip"] if coded else []))
    sent = gzip.compress(sent) if coded else sent
    got = in_turn(program, house, head, (b"", b"\r\n\r\n"), (sent, expected))
    assert got.body == expected
    assert got.all("Content-Encoding") == []


def test_a_body_that_determines_header_fields_is_read_first(program: Program, house: House) -> None:
    def late(_: Message) -> Iterator[bytes]:
        yield CHUNKED + b"\r\n"
        time.sleep(1.2)
        yield chunk(b'{"size":"5"}') + b"0\r\n\r\n"

    house.service.answer = late
    assert get(program, "/v1/fields").one("X-Size") == b"5"


Add = Callable[[bytes, bool], bytes]


def deflated(wbits: int) -> Add:
    coder = zlib.compressobj(6, zlib.DEFLATED, wbits)
    end = zlib.Z_FINISH, zlib.Z_SYNC_FLUSH
    return lambda data, more: coder.compress(data) + coder.flush(end[more])


def brotlied() -> Add:
    coder = brotli.Compressor()
    return lambda data, more: coder.process(data) + (coder.flush() if more else coder.finish())


def zstandard() -> Add:
    coder = zstd.ZstdCompressor()
    return lambda data, more: coder.compress(data, coder.FLUSH_BLOCK if more else coder.FLUSH_FRAME)


CODERS: dict[str, tuple[str, Callable[[], Add]]] = {
    "gzip": ("gzip", lambda: deflated(31)),
    "gzip, a member for each": ("x-gzip", lambda: lambda data, _: gzip.compress(data)),
    "deflate": ("deflate", lambda: deflated(15)),
    "bare deflate": ("deflate", lambda: deflated(-15)),
    "br": ("br", brotlied),
    "zstd": ("zstd", zstandard),
    "zstd, a frame for each": ("zstd", lambda: lambda data, _: bytes(zstd.compress(data))),
    "identity": ("identity", lambda: lambda data, _: data),
}


@pytest.mark.parametrize(("coding", "coder"), CODERS.values(), ids=CODERS)
@pytest.mark.parametrize("content_type", [EVENTS, LINES, "application/json"])
def test_a_document_of_a_compressed_stream_is_forwarded_before_the_next_one_is_sent(
    program: Program, house: House, coding: str, coder: Callable[[], Add], content_type: str
) -> None:
    around = (b"data: ", b"\n\n") if content_type == EVENTS else (b"", b"\n")
    new, old = (b'{"%s":"%%s"}'.join(around) % name for name in (b"total", b"amount"))
    add = coder()
    steps = [(add(new % word, word != b"last"), old % word) for word in (b"a", b"b", b"last")]
    got = in_turn(program, house, head_of(content_type, f"Content-Encoding: {coding}"), *steps)
    assert got.body == b"".join(expected for _, expected in steps)
    assert got.all("Content-Encoding") == []


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        *((EVENTS, charset) for charset in ("utf8", "us-ascii", "iso-8859-1", "nobody-knows")),
        *((LINES, charset) for charset in ("UTF8", "US-ASCII", '"utf-8"')),
    ],
)
def test_a_stream_is_utf_8_whatever_its_charset_parameter_says(
    program: Program, house: House, content_type: str, charset: str
) -> None:
    new, old = (NEW, OLD) if content_type == EVENTS else (ADDED, OLDER)
    house.service.answer = answer(new, content_type=f"{content_type}; charset={charset}")
    assert get(program, "/v1/a").body == old


def test_a_compressed_stream_is_bounded_and_must_be_complete(
    program: Program, house: House
) -> None:
    """The cases are a line of 50 MB compressed to 50 kB, and a body that is cut off."""
    bomb, line = gzip.compress(b"x" * 50_000_000), gzip.compress(b'{"total":1}\n' * 9)
    for body in (bomb, line[:-9], b"oops"):
        coded = "Content-Encoding: gzip"
        house.service.answer = answer(body, coded, content_type=LINES)
        with pytest.raises(ConnectionError):
            get(program, "/v1/a")
    for content_type in (LINES, "application/json"):
        whole = answer(line + gzip.compress(b""), coded, content_type=content_type)
        house.service.answer = whole
        assert get(program, "/v1/a").body == b'{"amount":1}\n' * 9


@pytest.mark.parametrize("content_type", [EVENTS, LINES, "text/plain", None])
def test_a_stream_in_an_unknown_coding_is_forwarded(
    program: Program, house: House, content_type: str | None
) -> None:
    lines = "Content-Encoding: x-own", "Content-Digest: sha-256=:AA==:"
    house.service.answer = answer(b'{"total":1}\n', *lines, content_type=content_type)
    got = get(program, "/v1/a")
    assert (got.status, got.body) == (200, b'{"total":1}\n')
    assert (got.one("Content-Encoding"), got.one("Content-Length")) == (b"x-own", b"12")
    assert got.one("Content-Digest") == b"sha-256=:AA==:"


@pytest.mark.parametrize(
    "line", [b": alive\n", b"retry: 10\n", b"id: 7\r\n", b"\n", b"\r\n: alive\r\n", b"other\n"]
)
def test_lines_before_the_data_of_an_event_do_not_wait_for_it(
    program: Program, house: House, line: bytes
) -> None:
    steps = [(NEW, OLD), (line, chunk(line)), (NEW, b"\n" + OLD)]
    got = in_turn(program, house, head_of(EVENTS), *steps)
    assert got.body == OLD + line + OLD


@pytest.mark.parametrize(
    ("content_type", "sent"),
    [
        (EVENTS, BOM + NEW.replace(b"\n", b"\r\n")),
        (EVENTS, 'id: é\rdata: {"total":"é"}\r\r'.encode()),
        (EVENTS, b"event: e\ndata: [\ndata: 1]\n\n" + NEW[:-1]),
        (LINES, '{"total":"é"}\r\n{"total":2}'.encode()),
        ("application/json", ADDED * 2),
    ],
)
def test_a_stream_split_at_every_byte_is_converted(
    program: Program, house: House, content_type: str, sent: bytes
) -> None:
    def bytewise(_: Message) -> Iterator[bytes]:
        yield head_of(content_type)
        for at in range(len(sent)):
            yield chunk(sent[at : at + 1])
            time.sleep(0.001)
        yield b"0\r\n\r\n"

    house.service.answer = bytewise
    assert get(program, "/v1/a").body == sent.replace(b"total", b"amount")
