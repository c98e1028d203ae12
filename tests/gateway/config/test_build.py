"""Building the Snapshot: the map of paths, and warnings about the configuration as a whole."""

import pytest

from gateway.config.load import check
from tests.gateway.config.rules import RULES, edited, loaded


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


@pytest.mark.parametrize(
    ("bypass", "lifecycle", "warned"),
    [
        ("true", "lifecycle: { deprecated: 2025-01-01 }", 1),
        ("true", "brownout: { percent: 5 }", 1),
        ("[edge]", "lifecycle: { deprecated: 2025-01-01 }", 0),
        ("true", "", 0),
    ],
)
def test_dates_that_a_front_proxy_may_pass_by_are_warned_of(
    bypass: str, lifecycle: str, warned: int
) -> None:
    text = f"bypass: {bypass}\n{edited('{ service: old }', f'{{ service: old, {lifecycle} }}')}"
    _, warnings = check(text.encode(), "gateway.yaml", {})
    assert sum("person version 1 past the gateway" in issue.text for issue in warnings) == warned


@pytest.mark.parametrize(
    ("top", "warned"),
    [
        ("bypass: [edge]", 1),
        ("bypass: [edge]\nstate: state.db", 1),
        ("bypass: [edge]\nstate: postgresql://db/gateway", 0),
        ("bypass: ['']", 0),
        ("bypass: true", 0),
    ],
)
def test_logs_that_cannot_be_counted_are_warned_of(top: str, warned: int) -> None:
    _, warnings = check(f"{top}\n{RULES}".encode(), "gateway.yaml", {})
    assert sum("counted in PostgreSQL alone" in issue.text for issue in warnings) == warned


@pytest.mark.parametrize(
    ("written", "bypass", "names"),
    [
        ("false", False, ()),
        ("true", True, ()),
        ("['']", False, ()),
        ("[a, '', b, a]", True, ("a", "b")),
    ],
)
def test_front_proxies(written: str, bypass: bool, names: tuple[str, ...]) -> None:
    found = loaded(f"bypass: {written}\n{RULES}")
    assert (found.bypass, found.front_proxies) == (bypass, names)
