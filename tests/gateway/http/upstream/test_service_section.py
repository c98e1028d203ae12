"""Services: their targets and timeouts."""

import pytest

from gateway.http.upstream.service import Target, Timeouts
from tests.gateway.rules.rules import edited, loaded


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://backend:8001", Target("backend", 8001)),
        ("http://backend", Target("backend", 80)),
        ("http://backend:8001/", Target("backend", 8001)),
        ("http://a.b-c_d.example:1", Target("a.b-c_d.example", 1)),
        ("http://192.0.2.1:65535", Target("192.0.2.1", 65535)),
        ("http://[2001:db8::1]:8001", Target("2001:db8::1", 8001)),
        ("http://[::1]", Target("::1", 80)),
    ],
)
def test_target(url: str, target: Target) -> None:
    snapshot = loaded(edited("http://127.0.0.1:8001", url))
    assert snapshot.services["old"].targets == (target,)


def test_several_targets_keep_their_order() -> None:
    snapshot = loaded(edited('"http://127.0.0.1:8001"', '"http://b", "http://a"'))
    assert [target.host for target in snapshot.services["old"].targets] == ["b", "a"]


def test_timeouts() -> None:
    snapshot = loaded(edited('8001"] }', '8001"], timeouts: { connect: 0.5, first_byte: 1 } }'))
    assert snapshot.services["old"].timeouts == Timeouts(0.5, 1.0, 60.0)
    assert snapshot.services["new"].timeouts == Timeouts()
