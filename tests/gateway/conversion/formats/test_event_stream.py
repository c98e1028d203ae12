"""Server-sent events: the data that is JSON is converted, and all else passes byte for byte."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats import streams
from gateway.conversion.formats.streams import EventStream, events
from gateway.conversion.version_step import Direction, VersionLink
from gateway.http.content_coding import DecodedTooLargeError
from gateway.http.turns.thread_pace import Step
from gateway.versions.version import Version


def marked(document: bytes, _: Step) -> bytes:
    """Return an object or array that shows what was taken for one."""
    return b"<" + document + b">" if document.startswith((b"{", b"[")) else document


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"data: {}\n\n", b"data: <{}>\n\n"),
        (b"data:[1]\r\n\r\n", b"data: <[1]>\r\n\r\n"),
        (b"data: {}\r\r", b"data: <{}>\r\r"),
        (b"event: a\ndata: {\nid: 7\ndata: }\n\n", b"event: a\ndata: <{\ndata: }>\nid: 7\n\n"),
        (b"data: [DONE\n\n", b"data: <[DONE>\n\n"),
        (b"data: done\n\n", b"data: done\n\n"),
        (b"data\n\n", b"data\n\n"),
        (b"id: 1\n\n", b"id: 1\n\n"),
        (b"database: {}\n\n", b"database: {}\n\n"),
        (b": ping\n", b": ping\n"),
        (b":\ndata: {}\n\n", b":\ndata: <{}>\n\n"),
    ],
)
def test_an_event(given: bytes, expected: bytes) -> None:
    assert EventStream(marked, 100, 100).feed(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"event: a\ndata: {}\n\n", b"event: A\ndata: <{}>\n\n"),
        (b"data: 1\r\nevent:a\r\n\r\n", b"data: 1\r\nevent:A\r\n\r\n"),
        (b"id: 1\revent: a\r\r", b"id: 1\revent: A\r\r"),
        (b"event\ndata: event: a\n\n", b"event\ndata: event: a\n\n"),
        (b"event: \xff\n\n", b"event: \xff\n\n"),
    ],
)
def test_the_name_of_an_event(given: bytes, expected: bytes) -> None:
    link = VersionLink(Version(1), Version(2), (), events={"a": "A", "": "no name"})
    conversion = BodyConversion((link,), Direction.DOWN)
    assert EventStream(marked, 100, 100, conversion).feed(given) == expected


def test_an_event_is_converted_when_it_ends() -> None:
    stream = EventStream(marked, 100, 100)
    assert stream.feed(b"data: {") == b""
    assert stream.feed(b"}\n") == b""
    assert stream.feed(b"\ndata: x") == b"data: <{}>\n\n"
    assert stream.finish() == b"data: x"
    assert stream.finish() == b""


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (b": ping\n\nid:7\ndata: {\ndata:}\n\n", [{"id": b"7", "data": b"{\n}"}]),
        (b"event: a\r\r\n\r\ndata\r\n\r\n", [{"event": b"a"}, {"data": b""}]),
        (b"id: 1\nid: 2\n\nid: 3\n", [{"id": b"2"}]),
    ],
)
def test_the_events_of_a_stream(given: bytes, found: list[dict[str, bytes]]) -> None:
    assert events(given) == found


PIECES = [b"data: {}", b"data: 1", b"id: 2", b": a", b"\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"\r"]


@given(st.lists(st.sampled_from(PIECES)), st.data())
def test_it_does_not_matter_where_the_bytes_are_cut(
    parts: list[bytes], data: st.DataObject
) -> None:
    text = b"".join(parts)
    at = data.draw(st.integers(0, len(text)))
    whole, cut = EventStream(marked, 1000, 100), EventStream(marked, 1000, 100)
    expected = whole.feed(text) + whole.finish()
    assert cut.feed(text[:at]) + cut.feed(text[at:]) + cut.finish() == expected


class Counting:
    """Searches for a pattern, and counts the bytes that it looks at."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.looked = 0

    def search(self, text: bytearray, begin: int) -> re.Match[bytes] | None:
        found = self._pattern.search(text, begin)
        self.looked += (len(text) if found is None else found.end()) - begin
        return found


@pytest.mark.parametrize("begin", [b"data: {", b": a comment", b"data: {}\n\n: a"])
@pytest.mark.parametrize("piece", [b"a", b"\r", b"a\n", b"data: {}\n\n"])
def test_the_search_for_ends_is_linear(
    monkeypatch: pytest.MonkeyPatch, begin: bytes, piece: bytes
) -> None:
    """However small the pieces are, each byte is looked at a few times at most."""
    events, lines = Counting(streams._END_OF_EVENT), Counting(streams._END_OF_LINE)
    monkeypatch.setattr(streams, "_END_OF_EVENT", events)
    monkeypatch.setattr(streams, "_END_OF_LINE", lines)
    stream = EventStream(marked, 1_000_000, 1_000_000)
    for number in range(5000):
        stream.feed(piece if number else begin)
    assert len(piece) * 4999 <= events.looked + lines.looked <= (len(piece) + 3) * 5000 + 100
    at_once = events.looked + lines.looked
    EventStream(marked, 1_000_000, 1_000_000).feed(begin + piece * 5000)
    assert events.looked + lines.looked - at_once <= 2 * len(begin + piece * 5000)


def test_an_event_without_end_is_bounded() -> None:
    stream = EventStream(marked, 8, 100)
    stream.feed(b"data: 12")
    with pytest.raises(DecodedTooLargeError, match="an event of more than 8 bytes"):
        stream.feed(b"3")


def test_an_event_that_comes_with_its_end_is_bounded() -> None:
    with pytest.raises(DecodedTooLargeError, match="an event of more than 8 bytes"):
        EventStream(marked, 8, 100).feed(b"data: 1\n\n")


def test_an_event_of_many_lines() -> None:
    event = b"data: {\r\n: }\ndata: }\r\r"
    assert EventStream(marked, 100, 4).feed(event) == b"data: <{\r\ndata: }>\r\n: }\n\r"
    with pytest.raises(DecodedTooLargeError, match="an event of more than 3 lines"):
        EventStream(marked, 100, 3).feed(event)
