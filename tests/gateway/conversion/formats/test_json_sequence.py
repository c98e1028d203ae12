"""JSON texts that follow each other: each as it becomes complete, however the bytes are cut."""

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.formats import streams
from gateway.conversion.formats.streams import JsonSequenceStream, SeriesSearch
from gateway.http.content_coding import DecodedTooLargeError
from gateway.http.turns.thread_pace import Step


def marked(document: bytes, _: Step) -> bytes:
    """Return a document that shows what was taken for one."""
    return b"<" + document + b">"


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
def test_texts_end_with_line_feeds_outside_of_objects(given: bytes, expected: bytes) -> None:
    stream = JsonSequenceStream(marked, 100)
    assert stream.feed(given) + stream.finish() == expected


PARTS = [b"{", b"}", b"[", b"]", b'"', b"\\", b"\\\\", b"\n", b" ", b"\x1e", b"ab", b'"x":"y"']


@given(st.lists(st.sampled_from(PARTS)), st.lists(st.integers(0, 80)), st.integers(1, 9))
def test_it_does_not_matter_where_the_bytes_are_cut(
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


def test_a_text_is_bounded() -> None:
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
def test_a_series_begins_with_an_object_or_array(
    pieces: list[bytes], ended: bool, found: bool
) -> None:
    search = SeriesSearch()
    results = [search.ends_text(piece) for piece in pieces]
    assert (results[-1], search.found) == (ended, found)


@pytest.mark.parametrize("indent", [None, 1])
def test_the_search_in_one_large_document_is_fast(indent: int | None) -> None:
    """Beside its parsing, it takes a millisecond for each 300 KB."""
    text = json.dumps([{"name": "a\\b", "tags": ["x", {}]}] * 40_000, indent=indent).encode()
    search = SeriesSearch()
    begin = time.process_time()
    for at in range(0, len(text), 65536):
        assert not search.ends_text(text[at : at + 65536])
    assert time.process_time() - begin < 3
