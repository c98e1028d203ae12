"""Building the Snapshot: services, limits, trusted networks, and the map of paths."""

from ipaddress import ip_network

import pytest

from gateway.config.load import check
from gateway.core.service import Target, Timeouts
from tests.gateway.config.rules import RULES, edited, loaded


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


def test_limits() -> None:
    assert loaded(RULES).limits.convert == 16 * 1024 * 1024
    assert loaded(RULES + "limits: { convert: 5 }\n").limits.convert == 5


def test_trusted_proxies() -> None:
    snapshot = loaded(RULES + 'trusted_proxies: [10.0.0.0/8, "::1", 192.0.2.7]\n')
    networks = [ip_network(text) for text in ("10.0.0.0/8", "::1/128", "192.0.2.7/32")]
    assert list(snapshot.trusted_proxies) == networks
    assert loaded(RULES).trusted_proxies == ()


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("/v1/person", ("person", "/v{version}/person")),
        ("/param", ("person", "/param")),
        ("/users", ("users", "/users")),
        ("/users/", None),
    ],
)
def test_paths(path: str, endpoint: tuple[str, str] | None) -> None:
    found = loaded(RULES).router.find(path)
    assert endpoint == (found and (found[0].api, found[0].template.text))


@pytest.mark.parametrize(("state", "warned"), [("", 1), ("state: ''", 1), ("state: a.db", 0)])
def test_a_cutover_that_a_restart_forgets_is_warned_of(state: str, warned: int) -> None:
    cutover = 'service: old, cutover: { via: "2", percent: 25, sticky_by: request } }'
    text = f"{state}\n{edited('service: old }', cutover)}"
    _, warnings = check(text.encode(), "gateway.yaml", {})
    assert sum("state: FILE" in issue.text for issue in warnings) == warned
