"""The report: one line per mistake, in a format that editors can jump to."""

import pytest

from gateway.base.mistakes import (
    ConfigError,
    Issue,
    Location,
    Mistake,
    Mistakes,
    in_order,
    place,
    suggest,
)


def test_issues_are_reported_one_per_line_in_the_order_of_the_file() -> None:
    error = ConfigError(
        "gateway.yaml",
        [
            Issue(7, 3, "apis.person", "is wrong"),
            Issue(0, 0, "", "cannot be read"),
            Issue(2, 9, "services.old", "is bad"),
            Issue(2, 1, "", "is odd"),
        ],
    )
    assert str(error).splitlines() == [
        "gateway.yaml: cannot be read",
        "gateway.yaml:2:1: is odd",
        "gateway.yaml:2:9: services.old: is bad",
        "gateway.yaml:7:3: apis.person: is wrong",
    ]


def test_warnings_about_lossy_conversions_come_last() -> None:
    lossy = [Issue(line, 1, "", f"warning: lossy towards version {line}") for line in (1, 2, 3)]
    others = [Issue(9, 1, "", "warning: is odd"), Issue(2, 1, "", "is wrong")]
    expected = (*reversed(others), *lossy)
    assert tuple(in_order([lossy[2], *others, lossy[0], lossy[1]])) == expected
    assert ConfigError("x", [*reversed(lossy), *others]).issues == expected


def test_the_same_issue_is_reported_once() -> None:
    issue = Issue(1, 1, "apis", "is wrong")
    assert ConfigError("x", [issue, issue]).issues == (issue,)


def test_an_issue_is_one_printable_line() -> None:
    error = ConfigError("gateway.yaml", [Issue(1, 2, "apis.a\nb", "'\x1b[2J\u2028é' is bad")])
    assert str(error) == r"gateway.yaml:1:2: apis.a\nb: '\x1b[2J\u2028é' is bad"


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ((), ""),
        (("apis",), "apis"),
        (("apis", "person", "endpoints", 2, "path"), "apis.person.endpoints[2].path"),
        ((0, 1), "[0][1]"),
    ],
)
def test_a_location_is_written_as_a_path(location: Location, text: str) -> None:
    assert place(location) == text


@pytest.mark.parametrize(
    ("name", "known", "text"),
    [
        ("usres", ["users", "person"], "did you mean 'users'?"),
        ("x", ["users", "person"], "known: person, users"),
        ("x", [], "known: none"),
        ("g", ["a", "b", "c", "d", "e", "f", "gxyz", "gz", "h"], "did you mean 'gz'?"),
        ("g1", ["abcdef", *"hijklmno"], "known: o, n, m, l, k and 4 more"),
    ],
)
def test_a_hint_has_the_nearest_name_or_the_known_ones(
    name: str, known: list[str], text: str
) -> None:
    assert suggest(name, known) == text


def test_attempt_and_look_up_collect_mistakes() -> None:
    mistakes = Mistakes()
    assert mistakes.attempt(lambda: int("5"), "a") == 5
    assert mistakes.attempt(lambda: int("x", 10), "b", 0) is None
    assert mistakes.look_up("old", {"old": 1}, "service", "c") == 1
    assert mistakes.look_up("odl", {"old": 1}, "service", "c") is None
    assert mistakes.found == [
        Mistake(("b", 0), "invalid literal for int() with base 10: 'x'"),
        Mistake(("c",), "no service is called 'odl'; did you mean 'old'?"),
    ]


def test_a_report_of_many_mistakes_is_bounded() -> None:
    issues = [Issue(line, 1, "apis", "x" * 5000) for line in range(1, 200_001)]
    lines = ConfigError("gateway.yaml", issues).report().splitlines()
    assert len(lines) == 101
    assert lines[-1] == "gateway.yaml: and 199900 more"
    assert max(map(len, lines)) < 1100
