"""JSON lines: each line as it becomes complete, however the bytes are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.formats.streams import JsonLineStream
from gateway.http.content_coding import DecodedTooLargeError
from gateway.http.turns.thread_pace import Step


def marked(document: bytes, _: Step) -> bytes:
    """Return a document that shows what was taken for one."""
    return b"<" + document + b">"


def test_a_line_is_converted_when_it_ends() -> None:
    lines = JsonLineStream(marked, 100)
    assert lines.feed(b'{"a":') == b""
    assert lines.feed(b"1}\n[2]\r\n\n  \n3") == b'<{"a":1}>\n<[2]>\r\n\n  \n'
    assert lines.finish() == b"<3>"
    assert lines.finish() == b""


@given(st.lists(st.sampled_from([b"{}", b"[1]", b"", b" ", b"\n", b"\n", b"\r\n"])), st.data())
def test_it_does_not_matter_where_the_bytes_are_cut(
    parts: list[bytes], data: st.DataObject
) -> None:
    text = b"".join(parts)
    at = data.draw(st.integers(0, len(text)))
    whole, cut = JsonLineStream(marked, 1000), JsonLineStream(marked, 1000)
    expected = whole.feed(text) + whole.finish()
    assert cut.feed(text[:at]) + cut.feed(text[at:]) + cut.finish() == expected


def test_a_line_that_comes_with_its_end_is_bounded() -> None:
    lines = JsonLineStream(marked, 8)
    assert lines.feed(b"12345678\n") == b"<12345678>\n"
    with pytest.raises(DecodedTooLargeError, match="a line of more than 8 bytes"):
        lines.feed(b"123456789\n")


def test_a_line_without_end_is_bounded() -> None:
    lines = JsonLineStream(marked, 8)
    lines.feed(b"12345678")
    with pytest.raises(DecodedTooLargeError, match="a line of more than 8 bytes"):
        lines.feed(b"9")
