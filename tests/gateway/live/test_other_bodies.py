"""Conversion of bodies that are not a single JSON document, over sockets."""

import gzip
import json
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.gateway.kit import DEADLINE
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Message, answer, ask, chunked, get, parse_answer, request

NEWER = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'
OLDER = b'{"name":"Bob Charlie"}'
CSV = b"first,last\r\nBob,Charlie\r\n"


def test_a_listed_media_type_is_forwarded_unchanged_both_ways(house: House) -> None:
    house.service.answer = answer(CSV, "Content-MD5: x", content_type="text/csv; header=present")
    got = ask(house.gateway, "POST", "/other/v1", "Content-Type: Text/CSV", body=CSV)
    assert (got.status, got.body) == (200, CSV)
    assert got.one("Content-MD5") == b"x"
    assert house.service.last.body == CSV
    assert house.service.last.one("Content-Type") == b"Text/CSV"


def test_a_listed_media_type_may_exceed_the_conversion_limit(house: House) -> None:
    body = b"x" * 200_000  # limits.convert of house.yaml is 65,536
    assert (
        ask(house.gateway, "POST", "/other/v1", "Content-Type: image/png", body=body).status == 200
    )
    assert house.service.last.body == body


def test_the_media_types_of_an_endpoint_override_those_of_the_api(house: House) -> None:
    got = ask(house.gateway, "POST", "/other/v1/own", "Content-Type: text/plain", body=CSV)
    assert got.status == 200


@pytest.mark.parametrize(
    "content_type",
    ["application/xml", "text/csvs", "image", "multipart/form-data; boundary=x", "a/b, c/d"],
)
def test_a_body_with_an_unsupported_content_type_is_forwarded_unchanged(
    house: House, content_type: str
) -> None:
    field, large = f"Content-Type: {content_type}", CSV * 1_000_000
    got = ask(house.gateway, "POST", "/other/v1", field, "Digest: a=b", body=large)
    assert got.status == 200
    assert house.service.last.body == large
    assert house.service.last.one("Content-Type") == content_type.encode()
    assert house.service.last.one("Digest") == b"a=b"
    house.service.answer = answer(CSV, content_type=content_type)
    assert get(house.gateway, "/other/v1").body == CSV


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32-be"])
def test_a_json_patch_in_another_encoding_is_converted(house: House, encoding: str) -> None:
    patch = '[{"op":"replace","path":"/title","value":"A"}]'.encode(encoding)
    field = "Content-Type: application/json-patch+json"
    assert ask(house.gateway, "PATCH", "/other/v1", field, body=patch).status == 200
    sent = house.service.last.body.decode(encoding)
    assert sent == '[{"op":"replace","path":"/label","value":"A"}]'


@pytest.mark.parametrize("charset", ["iso-8859-1", "windows-1252", "utf-8"])
def test_a_form_in_another_charset_is_converted(house: House, charset: str) -> None:
    field = f"Content-Type: application/x-www-form-urlencoded; charset={charset}"
    assert ask(house.gateway, "POST", "/other/v1", field, body=b"title=A&x=%E9").status == 200
    assert house.service.last.body == b"label=A&x=%E9&channel=web"


def test_json_lines_in_another_charset_are_converted(house: House) -> None:
    field = "Content-Type: application/x-ndjson; charset=iso-8859-1"
    assert ask(house.gateway, "POST", "/other/v1", field, body=b'{"title":"A"}\n').status == 200
    assert house.service.last.body == b'{"label":"A","channel":"web"}\n'


def test_a_utf_8_body_labelled_ascii_is_converted(house: House) -> None:
    field = "Content-Type: application/json; charset=us-ascii"
    body = '{"title":"é"}'.encode()
    assert ask(house.gateway, "POST", "/other/v1", field, body=body).status == 200
    assert '"label":"é"' in house.service.last.body.decode()


def test_a_form_is_converted_and_cannot_hold_objects(house: House) -> None:
    form = "Content-Type: application/x-www-form-urlencoded"
    got = ask(house.gateway, "POST", "/other/v1", form, body=b"title=A+B&x=1&x=%C3%A4")
    assert got.status == 200
    assert house.service.last.body == b"label=A+B&x=1&x=%C3%A4&channel=web"
    got = ask(house.gateway, "POST", "/other/v1", form, body=b"name=Bob")
    assert got.problem["code"] == "unconvertible_request"
    assert "an object, which a form cannot hold" in got.problem["detail"]


def test_a_form_is_converted_to_json_for_a_json_service(house: House) -> None:
    form = "Content-Type: application/x-www-form-urlencoded"
    got = ask(house.gateway, "PUT", "/other/v1", form, body=b"name=A+B&x=1&size=2.50")
    assert got.status == 200
    assert house.service.last.all("Content-Type") == [b"application/json"]
    assert json.loads(house.service.last.body) == {
        "name": {"firstName": "A", "lastName": "B"},
        "x": ["1"],
        "size": 2.5,
        "channel": "web",
    }
    got = ask(house.gateway, "PUT", "/other/v1", form, body=b"size=two")
    assert got.problem["code"] == "unconvertible_request"


@pytest.mark.parametrize("framing", ["Content-Length: 0", "Transfer-Encoding: chunked"])
def test_an_empty_form_gets_the_default_fields(house: House, framing: str) -> None:
    """A body with this media type is a form, as browsers send it."""
    form = "Content-Type: application/x-www-form-urlencoded"
    body = b"0\r\n\r\n" if "chunked" in framing else b""
    assert ask(house.gateway, "PUT", "/other/v1", form, framing, body=body).status == 200
    assert house.service.last.all("Content-Type") == [b"application/json"]
    assert json.loads(house.service.last.body) == {"channel": "web"}
    assert ask(house.gateway, "POST", "/other/v1", form, framing, body=body).status == 200
    assert house.service.last.all("Content-Type") == [form.partition(": ")[2].encode()]
    assert house.service.last.body == b"channel=web"
    json_type = "Content-Type: application/json"
    assert ask(house.gateway, "PUT", "/other/v1", json_type, framing, body=body).status == 200
    assert house.service.last.body == b""


def test_a_merge_patch_gets_no_default_fields(house: House) -> None:
    lines = ["Content-Type: application/merge-patch+json"]
    for method in ("PATCH", "POST"):
        assert ask(house.gateway, method, "/other/v1", *lines, body=b'{"title":1}').status == 200
        assert json.loads(house.service.last.body) == {"label": 1}
    ask(house.gateway, "POST", "/other/v1", "Content-Type: application/json", body=b'{"title":1}')
    assert json.loads(house.service.last.body) == {"label": 1, "channel": "web"}


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/jsonl"])
def test_each_line_of_json_lines_is_converted(house: House, content_type: str) -> None:
    house.service.answer = answer(NEWER + b"\n\n" + NEWER, content_type=content_type)
    sent = chunked(OLDER[:5], OLDER[5:] + b"\r\n" + OLDER)
    lines = [f"Content-Type: {content_type}", "Transfer-Encoding: chunked"]
    got = ask(house.gateway, "POST", "/other/v1", *lines, body=sent)
    assert (got.status, got.body) == (200, OLDER + b"\n\n" + OLDER)
    assert got.all("Content-Length") == []
    expected = b'{"name":{"firstName":"Bob","lastName":"Charlie"},"channel":"web"}'
    assert house.service.last.body == expected + b"\r\n" + expected


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        (
            "application/jsonl",
            OLDER,
            b'{"name":{"firstName":"Bob","lastName":"Charlie"},"channel":"web"}',
        ),
        ("text/event-stream", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n"),
    ],
)
def test_a_short_stream_with_an_incomplete_document_is_refused(
    house: House, content_type: str, body: bytes, expected: bytes
) -> None:
    """A short stream arrives together with its head, and is converted only if it is complete."""
    got = ask(house.gateway, "POST", "/other/v1", f"Content-Type: {content_type}", body=body)
    assert got.status == 200
    assert house.service.last.body == expected


def test_converted_json_lines_are_compressed(house: House) -> None:
    house.service.answer = answer(NEWER + b"\n" + NEWER, content_type="application/x-ndjson")
    got = ask(house.gateway, "GET", "/other/v1", "Accept-Encoding: gzip")
    assert got.all("Content-Encoding") == [b"gzip"]
    assert b"Accept-Encoding" in got.one("Vary")
    assert gzip.decompress(got.body) == OLDER + b"\n" + OLDER


@pytest.mark.parametrize(
    ("method", "status", "content_type", "varies"),
    [
        ("GET", 200, "application/x-ndjson", True),
        ("GET", 200, "text/event-stream", False),
        ("HEAD", 200, "text/event-stream", False),
        ("HEAD", 200, "application/json", True),
        ("HEAD", 200, None, False),
        ("POST", 204, None, False),
        ("OPTIONS", 204, None, False),
    ],
)
def test_an_uncompressed_response_does_not_vary_by_accept_encoding(
    house: House, method: str, status: int, content_type: str | None, varies: bool
) -> None:
    typed = () if content_type is None else (f"Content-Type: {content_type}",)
    body = b"" if method != "GET" else b"data: " + NEWER + b"\n\n" if not varies else NEWER
    head = (f"HTTP/1.1 {status} It", *typed, "Connection: close", "", "")
    house.service.answer = lambda _: iter(["\r\n".join(head).encode() + body])
    got = ask(house.gateway, method, "/other/v1")
    assert (got.status, any(b"Accept-Encoding" in line for line in got.all("Vary"))) == (
        status,
        varies,
    )


def test_a_json_line_that_cannot_be_converted_is_refused(house: House) -> None:
    lines = ["Content-Type: application/x-ndjson"]
    got = ask(house.gateway, "POST", "/other/v1", *lines, body=b'{"name":7}\n')
    assert got.problem["code"] == "unconvertible_request"


def test_each_complete_event_is_forwarded_at_once(house: House) -> None:
    """The service sends the next event only after the client has received the first one."""
    arrived = threading.Event()

    def events(_: Message) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        yield b"id: 1\ndata: " + NEWER + b"\n\ndata: " + NEWER[:9]
        arrived.wait(DEADLINE)
        yield NEWER[9:] + b"\n\n: over\n\n"

    house.service.answer = events
    with socket.create_connection(("127.0.0.1", house.gateway.port), DEADLINE) as client:
        client.sendall(request("GET", "/other/v1"))
        read = b""
        while b"\n\n" not in read.partition(b"\r\n\r\n")[2]:
            piece = client.recv(65536)
            assert piece, read
            read += piece
        assert b"id: 1\ndata: " + OLDER + b"\n\n" in read
        arrived.set()
        while piece := client.recv(65536):
            read += piece
    assert b"data: " + OLDER + b"\n\n: over\n" in read


@pytest.mark.parametrize("size", [600_000, 3_000_000])
def test_a_slow_client_gets_the_complete_stream(house: House, size: int) -> None:
    """The last bytes and the end arrive while the client reads earlier bytes."""
    event = b'data: {"a":"' + b"x" * 980 + b'"}\n\n'
    events = event * (size // len(event))
    sent = threading.Event()

    def stream(_: Message) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        yield events
        sent.set()

    house.service.answer = stream
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(DEADLINE)
        client.connect(("127.0.0.1", house.gateway.port))
        client.sendall(request("GET", "/other/v1"))
        sent.wait(0.5)  # it would never be set if the service had to wait for the client
        read = b"".join(iter(lambda: client.recv(65536), b""))
    assert parse_answer(read).body == events


def test_an_empty_json_object_in_a_get_request_is_dropped(house: House) -> None:
    """Changes for responses apply to requests as well, but this body is not a response."""
    house.service.answer = answer(NEWER)
    got = ask(house.gateway, "GET", "/other/v1", "Content-Type: application/json", body=b"{}\n")
    assert (got.status, got.body) == (200, OLDER)
    assert house.service.last.body == b""


def test_event_names_are_converted_to_the_version(house: House) -> None:
    sent = b"event: created\ndata: " + NEWER + b"\n\nevent: gone\ndata: 7\n\n"
    house.service.answer = answer(sent, content_type="text/event-stream")
    got = ask(house.gateway, "GET", "/other/v1")
    assert got.body == b"event: new\ndata: " + OLDER + b"\n\nevent: gone\ndata: 7\n\n"


def test_a_stream_that_cannot_be_converted_is_cut(house: House) -> None:
    body = NEWER + b"\n" + b'{"name":7}\n' + NEWER + b"\n"
    house.service.answer = answer(body, content_type="application/x-ndjson")
    with socket.create_connection(("127.0.0.1", house.gateway.port), DEADLINE) as client:
        client.sendall(request("GET", "/other/v1"))
        read = b""
        try:
            while piece := client.recv(65536):
                read += piece
        except ConnectionResetError:
            pass
    assert not read.endswith(b"0\r\n\r\n")
    assert NEWER not in read
