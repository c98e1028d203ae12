"""The content coding that a client prefers, according to Accept-Encoding."""

import pytest

from gateway.http.content_coding import accepted_coding


@pytest.mark.parametrize(
    ("value", "coding"),
    [
        ("", None),
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, br", "gzip"),
        ("gzip;q=0.5, br ; Q=0.8", "br"),
        ("br;q=1.000, gzip;q=0.999", "br"),
        ("deflate", None),
        ("identity", None),
        ("*", "zstd"),
        ("*;q=0.5, gzip", "gzip"),
        ("*, zstd;q=0", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=0.0, *;q=0", None),
        ("gzip;q=0.5, identity", None),
        ("gzip;q=0.5, identity;q=0.5", "gzip"),
        ("identity;q=0", None),
        ("gzip;q=2, br;q=x, zstd;a=b", None),
        (",, gzip ,", "gzip"),
        ("gzip, gzip;q=0", "gzip"),
        (f"{'a' * 300}, br", "br"),
    ],
)
def test_the_preferred_coding_is_selected(value: str, coding: str | None) -> None:
    assert accepted_coding(value) == coding


def test_without_accept_encoding_no_coding_is_used() -> None:
    assert accepted_coding("") is None
