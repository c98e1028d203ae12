"""Tokens: claims as they stand there, and nothing of what is no token."""

import json
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.unverified_token import LONGEST, unverified
from tests.gateway.world import LAW


def token(payload: bytes) -> str:
    """Return a token of that payload, without padding (RFC 7515, section 2)."""
    return f"h.{urlsafe_b64encode(payload).decode().rstrip('=')}.s"


@LAW
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=3))
def test_claims_are_read_back(claims: dict[str, object]) -> None:
    assert unverified(token(json.dumps(claims).encode())) == claims


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a.b", "a.b.c.d", "..", token(b""), token(b"no"), token(b"[1]"), token(b'"a"')),
        *(token(b"\xff"), token(b"[" * 5000), "h.\u0661.s", "h.e.s", token(b'{"a":1}') + "\xe9"),
        token(b'{"sub": "%b"}' % (b"a" * LONGEST)),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_what_is_no_token_claims_nothing(text: str) -> None:
    assert unverified(text) is None


@LAW
@given(st.text(max_size=30))
def test_no_text_is_too_odd(text: str) -> None:
    assert unverified(f"{text}.{text}.{text}") is None
