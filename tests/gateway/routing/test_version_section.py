"""Versions of an API: their order, and the service and the conversions of each."""

import pytest

from gateway.conversion.chain import Conversion
from gateway.routing.snapshot import Route
from tests.gateway.rules.rules import RULES, edited, loaded


def routes(versions: str) -> dict[str, Route]:
    """Return the routes at /param for versions 1, 2, 10 with a link between neighbours."""
    conversions = (
        "    conversions:\n"
        '      - { between: ["2", "10"], changes: [default: { field: b, value: 2 }] }\n'
        '      - { between: ["1", "2"], changes: [default: { field: a, value: 1 }] }\n'
    )
    begin, end = RULES.index("    versions:"), RULES.index("  users:")
    text = f"{RULES[:begin]}    versions: {versions}\n{conversions}{RULES[end:]}"
    found = loaded(text).router.find("/param")
    assert found is not None
    return {str(version): route for version, route in found[0].routes.items()}


def way(conversion: Conversion | None) -> str | None:
    """Say how a conversion goes: `up 1-2 2-10`."""
    if conversion is None:
        return None
    links = (f"{link.older}-{link.newer}" for link in conversion.links)
    return " ".join((conversion.direction.value, *links))


@pytest.mark.parametrize(
    ("versions", "served"),
    [
        pytest.param(
            '{ "10": { service: new }, "2": { service: old }, "1": { service: old } }',
            {"1": ("1", "old"), "2": ("2", "old"), "10": ("10", "new")},
            id="each by itself, ordered as numbers",
        ),
        pytest.param(
            '{ "1": { via: "2" }, "2": { service: old }, "10": { service: new } }',
            {"1": ("2", "old"), "2": ("2", "old"), "10": ("10", "new")},
            id="via the next",
        ),
        pytest.param(
            '{ "1": { via: "2" }, "2": { via: "10" }, "10": { service: new } }',
            {"1": ("10", "new"), "2": ("10", "new"), "10": ("10", "new")},
            id="via one that is via another",
        ),
        pytest.param(
            '{ "1": { service: old }, "2": { via: "1" }, "10": { via: "1" } }',
            {"1": ("1", "old"), "2": ("1", "old"), "10": ("1", "old")},
            id="via an older one",
        ),
    ],
)
def test_served(versions: str, served: dict[str, tuple[str, str]]) -> None:
    found = {
        label: (str(route.service_version), route.service.name)
        for label, route in routes(versions).items()
    }
    assert found == served
    assert list(found) == ["1", "2", "10"]


def test_conversions_are_composed_along_the_way() -> None:
    down = routes('{ "1": { via: "10" }, "2": { service: old }, "10": { service: new } }')
    assert (way(down["1"].request), way(down["1"].response)) == ("up 1-2 2-10", "down 2-10 1-2")
    up = routes('{ "1": { service: old }, "2": { service: old }, "10": { via: "2" } }')
    assert (way(up["10"].request), way(up["10"].response)) == ("down 2-10", "up 2-10")
    assert (way(up["2"].request), way(up["2"].response)) == (None, None)


def test_switching_is_an_edit_of_one_line() -> None:
    found = loaded(edited('"1": { service: old }', '"1": { via: "2" }')).router.find("/param")
    assert found is not None
    served = {str(route.version): route.service.name for route in found[0].routes.values()}
    assert served == {"1": "new", "2": "new"}
