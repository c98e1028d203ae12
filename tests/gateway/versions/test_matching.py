"""Matching: a range or an unknown version selects the newest suitable version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.versions.matching import EXACT, Matching
from gateway.versions.version import Format, Version
from tests.gateway.world import LAW

INTEGERS = ("1", "2", "4")
SEMANTIC = ("0.9.0", "1.2.0", "1.2.5", "1.10.0", "2.0.0-rc.1", "2.1.0", "3.0.0-beta")
DATES = ("2024-01-01", "2024-06-15", "2025-01-01")


def ascending(*labels: str) -> tuple[Version, ...]:
    return tuple(Version(rank, label) for rank, label in enumerate(labels, 1))


def found(matching: Matching, raw: str) -> str | None:
    version = matching.find(raw)
    return None if version is None else str(version)


NEAREST = {
    Format.INTEGER: Matching(ascending(*INTEGERS), (Format.INTEGER,), nearest_lower=True),
    Format.SEMANTIC: Matching(ascending(*SEMANTIC), (Format.SEMANTIC,), nearest_lower=True),
    Format.DATE: Matching(ascending(*DATES), (Format.DATE,), nearest_lower=True),
}
RANGES = {
    Format.INTEGER: Matching(ascending(*INTEGERS), (Format.INTEGER,), ranges=True),
    Format.SEMANTIC: Matching(ascending(*SEMANTIC), (Format.SEMANTIC,), ranges=True),
    Format.DATE: Matching(ascending(*DATES), (Format.DATE,), ranges=True),
}


@pytest.mark.parametrize(
    ("written", "raw", "version"),
    [
        (Format.INTEGER, "3", "2"),
        (Format.INTEGER, "99", "4"),
        (Format.INTEGER, "0", None),
        (Format.INTEGER, "03", None),
        (Format.INTEGER, "3+", None),
        (Format.DATE, "2024-06-14", "2024-01-01"),
        (Format.DATE, "2024-06-15", "2024-06-15"),
        (Format.DATE, "2024-06-16", "2024-06-15"),
        (Format.DATE, "2999-12-31", "2025-01-01"),
        (Format.DATE, "2023-12-31", None),
        (Format.DATE, "2024-02-30", None),
        (Format.DATE, "3", None),
        (Format.SEMANTIC, "1.2.9", "1.2.5"),
        (Format.SEMANTIC, "1.9.0", "1.2.5"),
        (Format.SEMANTIC, "1.99.0", "1.10.0"),
        (Format.SEMANTIC, "1.10.0-rc.1", "1.2.5"),
        (Format.SEMANTIC, "1.1.0", None),
        (Format.SEMANTIC, "2.0.0", None),
        (Format.SEMANTIC, "3.0.0", None),
        (Format.SEMANTIC, "9.0.0", None),
        (Format.SEMANTIC, "1.x", None),
    ],
)
def test_an_unknown_version_matches_the_nearest_lower_version(
    written: Format, raw: str, version: str | None
) -> None:
    assert found(NEAREST[written], raw) == version


@pytest.mark.parametrize(
    ("written", "raw", "version"),
    [
        (Format.INTEGER, "1+", "4"),
        (Format.INTEGER, "3+", "4"),
        (Format.INTEGER, "5+", None),
        (Format.INTEGER, "01+", None),
        (Format.INTEGER, "1.x", None),
        (Format.INTEGER, "3", None),
        (Format.DATE, "2024-01-01+", "2025-01-01"),
        (Format.DATE, "2025-01-02+", None),
        (Format.DATE, "2024-13-01+", None),
        (Format.SEMANTIC, "1+", "1.10.0"),
        (Format.SEMANTIC, "1.2+", "1.10.0"),
        (Format.SEMANTIC, "1.2.6+", "1.10.0"),
        (Format.SEMANTIC, "1.11+", None),
        (Format.SEMANTIC, "1.x", "1.10.0"),
        (Format.SEMANTIC, "1.2.x", "1.2.5"),
        (Format.SEMANTIC, "1.3.x", None),
        (Format.SEMANTIC, "2.x", "2.1.0"),
        (Format.SEMANTIC, "2.0.x", None),
        (Format.SEMANTIC, "3.x", None),
        (Format.SEMANTIC, "0.x", "0.9.0"),
        (Format.SEMANTIC, "1.2.5.x", None),
        (Format.SEMANTIC, "01.x", None),
        (Format.SEMANTIC, "1.X", None),
        (Format.SEMANTIC, "x", None),
        (Format.SEMANTIC, "+", None),
        (Format.SEMANTIC, "1.2++", None),
        (Format.SEMANTIC, "1.2 ", None),
        (Format.SEMANTIC, "1.2.3", None),
    ],
)
def test_a_range_matches_the_newest_version_in_it(
    written: Format, raw: str, version: str | None
) -> None:
    assert found(RANGES[written], raw) == version


def test_without_configuration_only_labels_match() -> None:
    assert EXACT.is_exact
    for matching in (*NEAREST.values(), *RANGES.values()):
        assert not matching.is_exact
        exact = Matching(matching.ascending, matching.formats)
        assert exact.is_exact
        assert [exact.find(raw) for raw in ("1", "9", "1.9.0", "1+", "1.x", "2024-07-01")] == (
            [None] * 6
        )


@pytest.mark.parametrize(
    ("matching", "raw", "reads"),
    [
        (EXACT, "7", True),
        (EXACT, "7+", False),
        (Matching(ascending("v1"), ()), "v1beta1", True),
        (Matching(ascending("v1"), ()), "a b", False),
        (Matching(ascending("v1"), ()), "x" * 65, False),
        (RANGES[Format.INTEGER], "7+", True),
        (RANGES[Format.INTEGER], "7.x", False),
        (RANGES[Format.SEMANTIC], "7.x", True),
        (RANGES[Format.SEMANTIC], "7", False),
        (NEAREST[Format.DATE], "1999-01-01", True),
        (NEAREST[Format.DATE], "1999-01-01+", False),
    ],
)
def test_the_forms_of_versions_and_ranges_are_recognised(
    matching: Matching, raw: str, reads: bool
) -> None:
    assert matching.reads(raw) is reads


def test_error_messages_list_the_valid_forms_besides_labels() -> None:
    assert EXACT.forms(()) == ""
    nearest = NEAREST[Format.DATE]
    later = ", or a later one, which selects the newest before it"
    assert nearest.forms(nearest.ascending) == later
    assert nearest.forms(nearest.ascending[:1]) == ""  # a later version would also be refused
    such = ", or a range such as {}"
    assert RANGES[Format.INTEGER].forms(RANGES[Format.INTEGER].ascending) == such.format("4+")
    assert RANGES[Format.SEMANTIC].forms(RANGES[Format.SEMANTIC].ascending) == such.format(
        "2.x or 2.1+"
    )
    unreleased = Matching(ascending("1.0.0-rc.1"), (Format.SEMANTIC,), ranges=True)
    assert unreleased.forms(unreleased.ascending) == ""


def test_a_range_that_selects_an_ended_version_is_not_listed() -> None:
    matching = RANGES[Format.INTEGER]
    assert matching.forms(matching.ascending[:2]) == ""  # 2+ selects version 4


@pytest.mark.parametrize(
    ("raw", "nearest", "in_range"),
    [
        ("1.x", None, "1.2.0"),
        ("1.2.x", None, "1.2.0"),
        ("1.2.1+", None, None),
        ("1.10.0", "1.10.0", None),
        ("2.9.0", "2.1.0", None),
        ("0.x", None, None),
    ],
)
def test_ranges_select_only_from_the_versions_of_an_endpoint(
    raw: str, nearest: str | None, in_range: str | None
) -> None:
    own = tuple(each for each in ascending(*SEMANTIC) if each.label in ("1.2.0", "3.0.0-beta"))
    assert found(NEAREST[Format.SEMANTIC].among(own), raw) == nearest
    ranges = RANGES[Format.SEMANTIC].among(own)
    assert found(ranges, raw) == in_range
    assert ranges.forms(own) == ", or a range such as 1.x or 1.2+"


@LAW
@given(st.sets(st.integers(0, 60), max_size=6), st.integers(0, 60))
def test_the_nearest_lower_version_is_the_newest_one_up_to_the_requested_version(
    on_offer: set[int], asked: int
) -> None:
    versions = ascending(*map(str, sorted(on_offer)))
    matching = Matching(versions, (Format.INTEGER,), nearest_lower=True)
    lower = [number for number in on_offer if number <= asked]
    assert found(matching, str(asked)) == (str(max(lower)) if lower else None)


@LAW
@given(
    st.sets(st.tuples(*[st.integers(0, 3)] * 3), max_size=8),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_a_range_never_leaves_its_major_version(
    on_offer: set[tuple[int, int, int]], asked: tuple[int, int]
) -> None:
    def label(numbers: list[tuple[int, int, int]]) -> str | None:
        return ".".join(map(str, max(numbers))) if numbers else None

    versions = ascending(*(".".join(map(str, each)) for each in sorted(on_offer)))
    matching = Matching(versions, (Format.SEMANTIC,), ranges=True)
    major, minor = asked
    within = [each for each in on_offer if each[0] == major]
    onwards = [each for each in within if each[1] >= minor]
    narrow = [each for each in within if each[1] == minor]
    for raw, fits in ((f"{major}.x", within), (f"{major}.{minor}+", onwards)):
        assert found(matching, raw) == label(fits)
    assert found(matching, f"{major}.{minor}.x") == label(narrow)


MIXED = ascending("1", "2", "3.1.0", "2026-01-31", "2026-06-01-preview")


@pytest.mark.parametrize(
    ("raw", "nearest", "in_range"),
    [
        ("2", "2", None),
        ("9", "2", None),
        ("1+", None, "2"),
        ("3.9.0", "3.1.0", None),
        ("3.x", None, "3.1.0"),
        ("4.0.0", None, None),
        ("2025-01-01", None, None),
        ("2026-07-01", "2026-01-31", None),
        ("2026-01-01+", None, "2026-01-31"),
        ("x+", None, None),
    ],
)
def test_a_version_never_matches_a_version_of_another_format(
    raw: str, nearest: str | None, in_range: str | None
) -> None:
    assert found(Matching(MIXED, tuple(Format), nearest_lower=True), raw) == nearest
    assert found(Matching(MIXED, tuple(Format), ranges=True), raw) == in_range


def test_an_alias_selects_its_version() -> None:
    matching = Matching(MIXED, tuple(Format), aliases={"latest": MIXED[-1], "v2": MIXED[1]})
    assert not matching.is_exact
    assert [found(matching, raw) for raw in ("latest", "v2", "v1", "2")] == [
        "2026-06-01-preview",
        "2",
        None,
        None,
    ]
    assert not matching.reads("v1")
    assert matching.forms(matching.ascending) == ", or latest or v2"
    assert matching.forms(matching.ascending[:2]) == ", or v2"


def test_an_alias_selects_its_version_even_if_an_endpoint_lacks_it() -> None:
    matching = Matching(MIXED, tuple(Format), True, aliases={"latest": MIXED[-1]})
    assert matching.among(MIXED[:1]).find("latest") == MIXED[-1]
