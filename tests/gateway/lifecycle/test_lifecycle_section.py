"""The lifecycles of an API's versions: their dates, and the versions that succeed them."""

from gateway.base.dates import parse_date
from gateway.lifecycle.lifecycle import Terms
from gateway.versions.version import Version
from tests.gateway.lifecycle.served import NAMED, first_version
from tests.gateway.rules.rules import RULES, edited, loaded

DATES = "deprecated: 2035-01-01, sunset: 2036-01-01"


def test_terms() -> None:
    text = edited(
        '"1": { service: old }',
        f'"1": {{ service: old, lifecycle: {{ {DATES}, link: "https://example.com/a",'
        " exempt: [{ client: a, until: 2037-01-01 }] } }",
        NAMED + RULES,
    )
    found = loaded(text).router.find("/param")
    assert found is not None
    assert found[0].selector is not None
    assert found[0].selector.terms == {
        "1": Terms(
            Version(1),
            parse_date("2035-01-01"),
            parse_date("2036-01-01"),
            "https://example.com/a",
            {"a": parse_date("2037-01-01")},
        )
    }


def test_a_version_without_lifecycle_has_none() -> None:
    assert first_version("schema: live").lifecycle is None


def test_a_version_that_has_ended_needs_no_service() -> None:
    text = edited('"1": { service: old }', '"1": { lifecycle: { sunset: 2020-01-01 } }')
    found = loaded(text).router.find("/param")
    assert found is not None
    assert list(found[0].routes) == [Version(2)]
    assert list(found[0].retired) == [Version(1)]
