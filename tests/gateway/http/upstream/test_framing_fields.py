"""The fields of a response by which its connection goes, and white space behind values."""

import pytest
from httptools import HttpParserError

from gateway.base.headers import HeaderFields
from gateway.http.upstream.connection import framing, trimmed


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ([], (None, b"", None)),
        ([(b"Server", b"x"), (b"ETag", b"")], (None, b"", None)),
        ([(b"CONTENT-Length", b"5")], (5, b"", None)),
        ([(b"Content-Length", b"0" * 18)], (0, b"", None)),
        ([(b"Keep-Alive", b"timeout=5 ")], (None, b"", b"timeout=5 ")),
        (
            [(b"Transfer-Encoding", b"Chunked\t"), (b"transfer-encoding", b"x ")],
            (None, b"chunked\t,x,", None),
        ),
        ([(b"A" * 100, b"b\t"), (b"A" * 100, b"c")], (None, b"", None)),
    ],
)
def test_framing(fields: HeaderFields, found: tuple[int | None, bytes, bytes | None]) -> None:
    assert framing(fields) == (trimmed(fields), *found)
    assert framing(fields) == (trimmed(fields), *found)  # with the names that are known now


def test_values_lose_the_white_space_behind_them_alone() -> None:
    assert trimmed([(b"A", b" b c \t "), (b"D", b"\t"), (b"E", b"")]) == [
        (b"A", b" b c"),
        (b"D", b""),
        (b"E", b""),
    ]


def test_their_number_is_bounded() -> None:
    fields = [(b"Link", b"")] * 2048
    assert framing(fields) == (trimmed(fields), None, b"", None)
    for read in (framing, trimmed):
        with pytest.raises(HttpParserError, match="more than 2048 fields"):
            read([*fields, (b"A", b"b")])


def test_the_digits_of_a_length_are_bounded() -> None:
    with pytest.raises(HttpParserError, match="a length of too many digits"):
        framing([(b"Content-Length", b"0" * 19)])
