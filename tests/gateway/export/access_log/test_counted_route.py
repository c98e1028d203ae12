"""CountedRoute: names of routes, and back."""

import pytest

from gateway.export.access_log.counted_route import CountedRoute, counted_route


@pytest.mark.parametrize(
    ("route", "name"),
    [
        (("person", "2", "/v{version}/person"), "straight person 2 /v{version}/person"),
        (("users", "", "/users"), "straight users  /users"),
        (("my API %41", "1.0.0-rc.1", "/a b/{c}"), "straight my%20API%20%2541 1.0.0-rc.1 /a b/{c}"),
    ],
)
def test_a_name_has_all_of_it(route: tuple[str, str, str], name: str) -> None:
    assert CountedRoute(*route).name == name
    assert counted_route(name) == route


@pytest.mark.parametrize("name", ["", "everything else", "straight person 2", "Straight a 1 /a"])
def test_other_routes_are_not_counted(name: str) -> None:
    assert counted_route(name) is None
