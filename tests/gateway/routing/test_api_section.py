"""APIs: with and without versions, with and without conversions."""

from tests.gateway.rules.rules import RULES, loaded


def test_without_versions() -> None:
    found = loaded(RULES).router.find("/users")
    assert found is not None
    (route,) = found[0].routes.values()
    assert (route.version, route.service_version, route.service.name, route.request) == (
        None,
        None,
        "old",
        None,
    )


def test_neighbours_need_no_conversion_unless_one_is_served_via_the_other() -> None:
    begin, end = RULES.index("    conversions:"), RULES.index("  users:")
    assert loaded(RULES[:begin] + RULES[end:]).summary == "2 services, 5 endpoints"
