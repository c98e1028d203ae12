"""Each mistake that pydantic finds is reported once, with its position and a remedy."""

import pytest

from tests.gateway.rules.rules import edited, report


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        pytest.param(
            "[POST]",
            "[true]",
            ["22:35: apis.users.endpoints[0].methods[0]: expected a string; write it in quotes"],
            id="an only element that is bad does not make its list too short",
        ),
        pytest.param(
            "{ in: path }",
            "[{ in: query }]",
            ["8:49: apis.person.endpoints[0].version[0]: 'name' is missing here; add it"],
            id="nor at any depth",
        ),
        pytest.param(
            '"2": { service: new }',
            '"2": 5',
            ["14:7: apis.person.versions.2: expected a mapping such as { service: ... }"],
            id="names of unions are no part of the place",
        ),
        pytest.param(
            "methods: [POST]",
            "version: { in: header, names: X }",
            [
                "22:25: apis.users.endpoints[0].version: 'name' is missing here; add it",
                "22:48: apis.users.endpoints[0].version.names: unknown key; did you mean 'name'?",
            ],
            id="keys are those of the mechanism",
        ),
        pytest.param(
            "methods: [POST]",
            "version: [{ in: path, value: X }]",
            ["22:47: apis.users.endpoints[0].version[0].value: unknown key; known: in"],
            id="in a list as well",
        ),
        pytest.param(
            "into: name }",
            "into: name, as: a }",
            [
                (
                    "18:66: apis.person.conversions[0].changes[0].join.as: unknown key;"
                    " known: default, fields, into, optional, separator"
                )
            ],
            id="keys are those of the change",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_the_expected_values(
    old: str, new: str, lines: list[str]
) -> None:
    assert report(edited(old, new)) == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "1:1: is empty; expected a mapping such as { services: ..., apis: ... }"),
        ("# rules\n", "1:1: is empty; expected a mapping such as { services: ..., apis: ... }"),
        ("rules", "1:1: expected a mapping such as { services: ..., apis: ... }"),
        ("- rules", "1:1: expected a mapping such as { services: ..., apis: ... }"),
    ],
)
def test_an_empty_configuration_is_refused(text: str, line: str) -> None:
    assert report(text) == [line]


def test_only_the_first_thousand_mistakes_are_explained() -> None:
    lines = report("services:\n" + "".join(f"  s{number}: 1\n" for number in range(1500)))
    assert lines[0].strip() == "1501 values are wrong; the first 1000 are explained"
    assert lines[-1].endswith("and 901 more")
