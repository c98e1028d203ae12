"""Building of the Snapshot: the router, and warnings about the whole configuration."""

import pytest

from gateway.rules.load import check
from tests.gateway.rules.rules import RULES, edited, loaded


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("/v1/person", ("person", "/v{version}/person")),
        ("/param", ("person", "/param")),
        ("/users", ("users", "/users")),
        ("/users/", None),
    ],
)
def test_a_path_is_routed_to_its_endpoint(path: str, endpoint: tuple[str, str] | None) -> None:
    found = loaded(RULES).router.find(path)
    assert endpoint == (found and (found[0].api, found[0].template.text))


@pytest.mark.parametrize(("state", "warned"), [("", 1), ("state: ''", 1), ("state: a.db", 0)])
def test_a_cutover_without_a_state_file_causes_a_warning(state: str, warned: int) -> None:
    cutover = 'service: old, cutover: { via: "2", percent: 25, sticky_by: request } }'
    text = f"{state}\n{edited('service: old }', cutover)}"
    _, warnings = check(text.encode(), "gateway.yaml", {})
    assert sum("state: FILE" in issue.text for issue in warnings) == warned
