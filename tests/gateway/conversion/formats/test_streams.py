"""Streams: each document is converted as soon as it is complete, with any chunk boundaries."""

import json
import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats import streams
from gateway.conversion.formats.streams import (
    EventStream,
    JsonLineStream,
    JsonSequenceStream,
    SeriesSearch,
    events,
)
from gateway.conversion.version_step import Direction, VersionLink
from gateway.http.content_coding import DecodedTooLargeError
from gateway.http.cooperative import Step
from gateway.versions.version import Version


def marked(document: bytes, _: Step) -> bytes:
    """Put a document between angle brackets, to show its boundaries."""
    return b"<" + document + b">"


def test_a_json_line_is_converted_as_soon_as_it_ends() -> None:
    lines = JsonLineStream(marked, 100)
    assert lines.feed(b'{"a":') == b""
    assert lines.feed(b"1}\n[2]\r\n\n  \n3") == b'<{"a":1}>\n<[2]>\r\n\n  \n'
    assert lines.finish() == b"<3>"
    assert lines.finish() == b""


def test_a_complete_line_over_the_size_limit_is_refused() -> None:
    lines = JsonLineStream(marked, 8)
    assert lines.feed(b"12345678\n") == b"<12345678>\n"
    with pytest.raises(DecodedTooLargeError, match="a line of more than 8 bytes"):
        lines.feed(b"123456789\n")


def test_an_incomplete_line_over_the_size_limit_is_refused() -> None:
    lines = JsonLineStream(marked, 8)
    lines.feed(b"12345678")
    with pytest.raises(DecodedTooLargeError, match="a line of more than 8 bytes"):
        lines.feed(b"9")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b'{"a":1}\n{"b":\n2}\r\n', b'<{"a":1}>\n<{"b":\n2}>\r\n'),
        (b"\x1e[1]\n\x1e[2]\x1e{", b"\x1e<[1]>\n\x1e<[2]>\x1e<{>"),
        (b'\n \n{"a":"}\\"\\\\"}\n', b'\n \n<{"a":"}\\"\\\\"}>\n'),
        (b'"a\n{}\n}\n]\n5', b'<"a>\n<{}>\n<}>\n<]>\n<5>'),
        (b"", b""),
    ],
)
def test_a_json_text_ends_at_a_line_feed_outside_objects_and_arrays(
    given: bytes, expected: bytes
) -> None:
    stream = JsonSequenceStream(marked, 100)
    assert stream.feed(given) + stream.finish() == expected


PARTS = [b"{", b"}", b"[", b"]", b'"', b"\\", b"\\\\", b"\n", b" ", b"\x1e", b"ab", b'"x":"y"']


@example([b"{", b'"', b"\n", b"}"], [1], 1)  # a line feed inside a string
@given(st.lists(st.sampled_from(PARTS)), st.lists(st.integers(0, 80)), st.integers(1, 9))
def test_the_boundaries_of_json_texts_do_not_depend_on_chunk_boundaries(
    parts: list[bytes], cuts: list[int], window: int
) -> None:
    text = b"".join(parts)
    whole, cut = JsonSequenceStream(marked, 1000), JsonSequenceStream(marked, 1000)
    expected = whole.feed(text) + whole.finish()
    at = sorted({0, *(each for each in cuts if each < len(text)), len(text)})
    before, streams._STEP = streams._STEP, window
    try:
        pieces = [cut.feed(text[low:high]) for low, high in pairwise(at)]
    finally:
        streams._STEP = before
    assert b"".join(pieces) + cut.finish() == expected


def test_an_incomplete_json_text_over_the_size_limit_is_refused() -> None:
    stream = JsonSequenceStream(marked, 8)
    stream.feed(b"[1,2,3,4")
    with pytest.raises(DecodedTooLargeError, match="a document of more than 8 bytes"):
        stream.feed(b"]")


@pytest.mark.parametrize(
    ("pieces", "ended", "found"),
    [
        ([b'{"a":', b"1}\n"], True, False),
        ([b'{"a":1}\n', b"\n", b"{"], False, True),
        ([b"[]\n{"], False, True),
        ([b"{}", b" ", b" \n "], True, False),
        ([b"{}{}"], False, False),
        ([b"5\n", b"6\n"], False, False),
        ([b"<p>\n", b"{}\n{}\n"], False, False),
        ([b"{\n", b'"a": [\n]\n'], False, False),
    ],
)
def test_a_series_is_detected_only_after_an_object_or_array(
    pieces: list[bytes], ended: bool, found: bool
) -> None:
    search = SeriesSearch()
    results = [search.ends_text(piece) for piece in pieces]
    assert (results[-1], search.found) == (ended, found)


@pytest.mark.parametrize("indent", [None, 1])
def test_the_search_for_a_series_in_a_large_document_takes_linear_time(indent: int | None) -> None:
    """The search takes about a millisecond for each 300 KB."""
    text = json.dumps([{"name": "a\\b", "tags": ["x", {}]}] * 40_000, indent=indent).encode()
    search = SeriesSearch()
    begin = time.process_time()
    for at in range(0, len(text), 65536):
        assert not search.ends_text(text[at : at + 65536])
    assert time.process_time() - begin < 3


def converted_event(document: bytes, _: Step) -> bytes:
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
def test_the_json_data_of_an_event_is_converted(given: bytes, expected: bytes) -> None:
    assert EventStream(converted_event, 100, 100).feed(given) == expected


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
def test_the_name_of_an_event_is_mapped(given: bytes, expected: bytes) -> None:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (), events={"a": "A", "": "no name"})
    conversion = BodyConversion((link,), Direction.DOWN)
    assert EventStream(converted_event, 100, 100, conversion).feed(given) == expected


def test_an_event_is_converted_as_soon_as_it_ends() -> None:
    stream = EventStream(converted_event, 100, 100)
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
def test_only_complete_events_are_parsed(given: bytes, found: list[dict[str, bytes]]) -> None:
    assert events(given) == found


PIECES = [b"data: {}", b"data: 1", b"id: 2", b": a", b"\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"\r"]


@given(st.lists(st.sampled_from(PIECES)), st.data())
def test_converted_events_do_not_depend_on_chunk_boundaries(
    parts: list[bytes], data: st.DataObject
) -> None:
    text = b"".join(parts)
    at = data.draw(st.integers(0, len(text)))
    whole, cut = EventStream(converted_event, 1000, 100), EventStream(converted_event, 1000, 100)
    expected = whole.feed(text) + whole.finish()
    assert cut.feed(text[:at]) + cut.feed(text[at:]) + cut.finish() == expected


class Counting:
    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.looked = 0

    def search(self, text: bytearray, begin: int) -> re.Match[bytes] | None:
        found = self._pattern.search(text, begin)
        self.looked += (len(text) if found is None else found.end()) - begin
        return found


@pytest.mark.parametrize("begin", [b"data: {", b": a comment", b"data: {}\n\n: a"])
@pytest.mark.parametrize("piece", [b"a", b"\r", b"a\n", b"data: {}\n\n"])
def test_the_search_for_ends_of_lines_and_events_takes_linear_time(
    monkeypatch: pytest.MonkeyPatch, begin: bytes, piece: bytes
) -> None:
    """Each byte is searched only a few times, even if the stream arrives in small pieces."""
    events, lines = Counting(streams._END_OF_EVENT), Counting(streams._END_OF_LINE)
    monkeypatch.setattr(streams, "_END_OF_EVENT", events)
    monkeypatch.setattr(streams, "_END_OF_LINE", lines)
    stream = EventStream(converted_event, 1_000_000, 1_000_000)
    for number in range(5000):
        stream.feed(piece if number else begin)
    assert len(piece) * 4999 <= events.looked + lines.looked <= (len(piece) + 3) * 5000 + 100
    at_once = events.looked + lines.looked
    EventStream(converted_event, 1_000_000, 1_000_000).feed(begin + piece * 5000)
    assert events.looked + lines.looked - at_once <= 2 * len(begin + piece * 5000)


def test_an_incomplete_event_over_the_size_limit_is_refused() -> None:
    stream = EventStream(converted_event, 8, 100)
    stream.feed(b"data: 12")
    with pytest.raises(DecodedTooLargeError, match="an event of more than 8 bytes"):
        stream.feed(b"3")


def test_a_complete_event_over_the_size_limit_is_refused() -> None:
    with pytest.raises(DecodedTooLargeError, match="an event of more than 8 bytes"):
        EventStream(converted_event, 8, 100).feed(b"data: 1\n\n")


def test_an_event_with_too_many_lines_is_refused() -> None:
    event = b"data: {\r\n: }\ndata: }\r\r"
    assert EventStream(converted_event, 100, 4).feed(event) == b"data: <{\r\ndata: }>\r\n: }\n\r"
    with pytest.raises(DecodedTooLargeError, match="an event of more than 3 lines"):
        EventStream(converted_event, 100, 3).feed(event)
