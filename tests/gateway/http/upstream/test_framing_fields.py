"""The framing information in response fields, and white space after values."""

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
def test_framing_returns_length_codings_and_keep_alive(
    fields: HeaderFields, found: tuple[int | None, bytes, bytes | None]
) -> None:
    assert framing(fields) == (trimmed(fields), *found)
    assert framing(fields) == (trimmed(fields), *found)  # with cached field names


def test_only_trailing_white_space_of_values_is_removed() -> None:
    assert trimmed([(b"A", b" b c \t "), (b"D", b"\t"), (b"E", b"")]) == [
        (b"A", b" b c"),
        (b"D", b""),
        (b"E", b""),
    ]


def test_the_number_of_fields_is_limited() -> None:
    fields = [(b"Link", b"")] * 2048
    assert framing(fields) == (trimmed(fields), None, b"", None)
    for read in (framing, trimmed):
        with pytest.raises(HttpParserError, match="more than 2048 header fields"):
            read([*fields, (b"A", b"b")])


def test_the_number_of_digits_of_a_length_is_limited() -> None:
    with pytest.raises(HttpParserError, match="a length of too many digits"):
        framing([(b"Content-Length", b"0" * 19)])
