"""Services: their targets and timeouts."""

import pytest

from gateway.http.upstream.service import Service, Target, Timeouts
from tests.gateway.rules.rules import edited, loaded


@pytest.mark.parametrize(
    ("host", "port", "authority"),
    [
        ("127.0.0.1", 8001, "127.0.0.1:8001"),
        ("person-v1", 80, "person-v1:80"),
        ("::1", 8001, "[::1]:8001"),
        ("2001:db8::7", 443, "[2001:db8::7]:443"),
    ],
)
def test_an_authority_has_ipv6_addresses_in_brackets(host: str, port: int, authority: str) -> None:
    assert Target(host, port).authority == authority


def test_a_service_has_default_timeouts() -> None:
    service = Service("users", (Target("127.0.0.1", 8003),))
    assert service.timeouts == Timeouts(connect=5.0, first_byte=30.0, between_bytes=60.0)


def test_a_service_is_immutable() -> None:
    service = Service("users", ())
    with pytest.raises(AttributeError):
        service.name = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Target("a", 1).port = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        service.timeouts.connect = 1.0  # type: ignore[misc]


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
def test_a_target_url_is_parsed(url: str, target: Target) -> None:
    snapshot = loaded(edited("http://127.0.0.1:8001", url))
    assert snapshot.services["old"].targets == (target,)


def test_several_targets_keep_their_order() -> None:
    snapshot = loaded(edited('"http://127.0.0.1:8001"', '"http://b", "http://a"'))
    assert [target.host for target in snapshot.services["old"].targets] == ["b", "a"]


def test_configured_timeouts_replace_the_defaults() -> None:
    snapshot = loaded(edited('8001"] }', '8001"], timeouts: { connect: 0.5, first_byte: 1 } }'))
    assert snapshot.services["old"].timeouts == Timeouts(0.5, 1.0, 60.0)
    assert snapshot.services["new"].timeouts == Timeouts()
