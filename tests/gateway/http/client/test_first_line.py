"""Request lines that the parser does not support, and their replacements."""

import pytest

from gateway.http.client import request_parsing

WORDS = {
    "standard": (b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n", ""),
    "later version": (b"GET / HTTP/1.2\r\nA: b", b"GET / HTTP/1.1\r\nA: b", ""),
    "later version so far": (b"\r\nGET / HTTP/1.9", b"\r\nGET / HTTP/1.1", ""),
    "version of two digits": (b"GET / HTTP/1.20\r\n", b"GET / HTTP/1.20\r\n", ""),
    "next major version": (b"GET / HTTP/2.0\r\n", b"GET / HTTP/2.0\r\n", ""),
    "field like a later version": (b"GET /\r\nA: HTTP/1.2", b"GET /\r\nA: HTTP/1.2", ""),
    "named": (b"BREW / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\n", "BREW"),
    "named, of a later version": (b"\r\nget / HTTP/1.3\r\n", b"\r\nPOST / HTTP/1.1\r\n", "get"),
    "named so far": (b"BR", b"POST", "BR"),
    "every character of a token": (b"!#$%&'*+-.^_`|~9aZ ", b"POST ", "!#$%&'*+-.^_`|~9aZ"),
    "longest": (b"B" * 32 + b" /", b"POST /", "B" * 32),
    "too long": (b"B" * 33 + b" /", b"B" * 33 + b" /", ""),
    "no token": (b"BR@W /", b"BR@W /", ""),
    "line that ends with its method": (b"BREW\r\n", b"BREW\r\n", ""),
    "reserved for HTTP/2": (b"PRI / HTTP/1.1\r\n", b"PRI / HTTP/1.1\r\n", ""),
    "empty": (b"", b"", ""),
}


@pytest.mark.parametrize(("head", "known", "method"), WORDS.values(), ids=WORDS)
def test_unsupported_methods_and_versions_are_replaced(
    head: bytes, known: bytes, method: str
) -> None:
    assert request_parsing.with_supported_words(head) == (known, method)


@pytest.mark.parametrize(
    ("head", "http"),
    [
        (b"GET / HTTP/1.1\r\n", True),
        (b"\r\nGET / HTTP/1.0\nHost: a\r\n", True),
        (b"GET / RTSP/1.1\r\n", False),
        (b"GET / RTSP/1.0\r\nA: / HTTP/1.1\r\n", False),
        (b"GET / HTTP/1.1", False),
    ],
)
def test_the_pattern_matches_only_http_request_lines(head: bytes, http: bool) -> None:
    assert bool(request_parsing.HTTP.match(head)) is http
