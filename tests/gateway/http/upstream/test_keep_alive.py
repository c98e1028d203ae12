"""The idle time of a connection to a service."""

import pytest

from gateway.http.upstream.connection import granted, jittered

FIELDS = {
    b"timeout=5": 4.0,
    b"timeout=5, max=100": 4.0,
    b"max=100, Timeout = 3": 2.0,
    b'timeout="7"': 6.0,
    b"timeout=0": 0.0,
    b"timeout=3600": 30.0,
    b"max=100": None,
    b"timeout=x": None,
    b"mytimeout=5": None,
}


@pytest.mark.parametrize(("value", "seconds"), FIELDS.items())
def test_the_idle_time_follows_keep_alive(value: bytes, seconds: float | None) -> None:
    assert granted(value) == seconds


def test_jitter_only_shortens() -> None:
    found = {jittered(4.0) for _ in range(100)}
    assert all(3.0 <= each <= 4.0 for each in found)
    assert len(found) > 10
