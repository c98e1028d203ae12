"""The fields of a response by which its connection goes, and white space behind values."""

import pytest

from gateway.core.headers import HeaderFields
from gateway.proxy.upstream.framing_fields import TooManyFieldsError, framing, trimmed


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ([], []),
        ([(b"Server", b"x"), (b"ETag", b"")], []),
        ([(b"CONTENT-Length", b"5")], [(b"content-length", b"5")]),
        ([(b"Keep-Alive", b"timeout=5 ")], [(b"keep-alive", b"timeout=5 ")]),
        (
            [(b"Transfer-Encoding", b"chunked\t"), (b"transfer-encoding", b"x")],
            [(b"transfer-encoding", b"chunked\t"), (b"transfer-encoding", b"x")],
        ),
        ([(b"A" * 100, b"b\t"), (b"A" * 100, b"c")], []),
    ],
)
def test_framing(fields: HeaderFields, found: HeaderFields) -> None:
    assert framing(fields) == (trimmed(fields), found)
    assert framing(fields) == (trimmed(fields), found)  # with the names that are known now


def test_values_lose_the_white_space_behind_them_alone() -> None:
    assert trimmed([(b"A", b" b c \t "), (b"D", b"\t"), (b"E", b"")]) == [
        (b"A", b" b c"),
        (b"D", b""),
        (b"E", b""),
    ]


def test_their_number_is_bounded() -> None:
    fields = [(b"Link", b"")] * 2048
    assert framing(fields) == (trimmed(fields), [])
    for read in (framing, trimmed):
        with pytest.raises(TooManyFieldsError, match="more than 2048 fields"):
            read([*fields, (b"A", b"b")])
