"""Services: addresses as a URI has them, and time limits."""

import pytest

from gateway.http.upstream.service import Service, Target, Timeouts


@pytest.mark.parametrize(
    ("host", "port", "authority"),
    [
        ("127.0.0.1", 8001, "127.0.0.1:8001"),
        ("person-v1", 80, "person-v1:80"),
        ("::1", 8001, "[::1]:8001"),
        ("2001:db8::7", 443, "[2001:db8::7]:443"),
    ],
)
def test_an_authority_puts_ipv6_in_brackets(host: str, port: int, authority: str) -> None:
    assert Target(host, port).authority == authority


def test_a_service_waits_within_limits_unless_told_otherwise() -> None:
    service = Service("users", (Target("127.0.0.1", 8003),))
    assert service.timeouts == Timeouts(connect=5.0, first_byte=30.0, between_bytes=60.0)


def test_a_service_never_changes() -> None:
    service = Service("users", ())
    with pytest.raises(AttributeError):
        service.name = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Target("a", 1).port = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        service.timeouts.connect = 1.0  # type: ignore[misc]
