"""Versions: canonical form, and order of integers, semantic versions and dates."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.versions.version import Format, Identifier, Semantic, Version, parse
from tests.gateway.world import LAW

NUMBERS = st.integers(0, 999_999_999)
# Digits of many scripts, and characters that lenient parsers ignore.
NEARLY = st.text(
    st.sampled_from(
        "0123456789\u0660\u0661\u0662\uff11\uff12²\u0966\u06f1 \t\n\r\0\x0b\x85\u2009_+-.,vVxe"
    ),
    max_size=11,
)


@pytest.mark.parametrize("text", ["0", "1", "2", "9", "10", "4711", "999999999"])
def test_a_whole_number_is_a_version(text: str) -> None:
    assert parse(text) == Version(int(text))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "01", "00", "1.0", "1.", ".1", "v1", "V1", "1a", "foo1", "one"),
        *(
            "1,2",
            "1,1",
            "1;2",
            "1/2",
            "1 2",
            " 1",
            "1 ",
            "\t1",
            "1\t",
            "1\n",
            "1\r\n",
            "\n1",
            "1\0",
        ),
        *("+1", "-1", "1_0", "0x1", "0b1", "1e0", "1e1", "%31", "1%20"),
        *(
            "\u0661",
            "\uff11",
            "²",
            "\u0967",
            "\U0001d7cf",
            "\u2460",
            "\u2160",
            "1\u0661",
            "1\u0301",
            "1\u200b",
            "\ufeff1",
        ),
        *("1000000000", "9" * 5000, "1" + "0" * 5000),
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_other_strings_are_not_versions(text: str) -> None:
    assert parse(text) is None


@LAW
@given(NUMBERS)
def test_parsing_the_string_of_a_version_returns_the_version(number: int) -> None:
    assert parse(str(Version(number))) == Version(number)


@LAW
@given(st.text() | NEARLY)
def test_only_the_canonical_form_is_parsed(text: str) -> None:
    version = parse(text)
    canonical = (
        0 < len(text) < 10 and set(text) <= set("0123456789") and text == (text.lstrip("0") or "0")
    )
    assert (version is not None) == canonical
    if version is not None:
        assert str(version) == text


@LAW
@given(NUMBERS, NUMBERS)
def test_versions_are_ordered_numerically(one: int, other: int) -> None:
    assert (Version(one) < Version(other)) == (one < other)
    assert (Version(one) == Version(other)) == (one == other)


def test_ten_comes_after_nine() -> None:
    versions = [Version(number) for number in (10, 9, 100, 1)]
    assert [str(version) for version in sorted(versions)] == ["1", "9", "10", "100"]


def test_a_version_is_immutable() -> None:
    with pytest.raises(AttributeError):
        Version(1).value = 2  # type: ignore[misc]


class TestSemantic:
    """Semantic Versioning 2.0.0, without build metadata."""

    @pytest.mark.parametrize(
        "text",
        [
            *("0.0.0", "1.2.3", "10.20.30", "999999999.0.0", "1.0.0-alpha", "1.0.0-alpha.1"),
            *("1.0.0-0", "1.0.0-0.3.7", "1.0.0-x.7.z.92", "1.0.0-x-y-z.--", "1.0.0-0a", "1.0.0--1"),
            *("1.0.0-01a", "1.0.0-RC.1", "1.0.0-999999999"),
        ],
    )
    def test_a_canonical_string_is_a_version(self, text: str) -> None:
        version = parse(text, Format.SEMANTIC)
        assert version is not None
        assert str(version) == text

    @pytest.mark.parametrize(
        "text",
        [
            *("", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.x", "1.2+", "01.2.3", "1.02.3", "1.2.03"),
            *("1.2.3-", "1.2.3-.", "1.2.3-a..b", "1.2.3-01", "1.2.3-a.01", "1.2.3-a_b", "1.2.3+a"),
            *(
                "1.2.3-a+b",
                " 1.2.3",
                "1.2.3 ",
                "1.2.3\n",
                "1.2.3-a\n",
                "1.2.\u0663",
                "1.2.3-\u0661",
            ),
            *("1.2.3-\xe9", "1000000000.0.0", "1.2.3-1000000000", "1.2.3-" + "a" * 59),
        ],
        ids=lambda text: ascii(text[:12]),
    )
    def test_other_strings_are_not_versions(self, text: str) -> None:
        assert parse(text, Format.SEMANTIC) is None

    def test_semantic_versions_are_ordered_as_the_specification_requires(self) -> None:
        """Semantic Versioning 2.0.0, section 11."""
        labels = [
            *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"),
            *("1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1-9", "1.2.0", "1.10.0", "2.0.0"),
        ]
        versions = [parse(label, Format.SEMANTIC) for label in labels]
        known = {version for version in versions if version is not None}
        assert [str(version) for version in sorted(known)] == labels


class TestDate:
    """Dates in the format of RFC 3339, section 5.6."""

    @pytest.mark.parametrize("text", ["2026-01-31", "2024-02-29", "0001-01-01", "9999-12-31"])
    def test_a_date_of_the_calendar_is_a_version(self, text: str) -> None:
        assert parse(text, Format.DATE) == Version(date.fromisoformat(text))
        assert str(parse(text, Format.DATE)) == text

    @pytest.mark.parametrize(
        "text",
        [
            *("", "1", "2023-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "0000-01-01"),
            *("2026-1-31", "26-01-31", "20260131", "2026-W05-6", "2026-031", "2026-01-31T00:00"),
            *("2026-01-31 ", "\n2026-01-31", "2026-01-31\n", "2026-01-\u0663\u0661", "+2026-01-31"),
            "2026/01/31",
        ],
        ids=lambda text: ascii(text[:12]),
    )
    def test_other_strings_are_not_versions(self, text: str) -> None:
        assert parse(text, Format.DATE) is None


numbers = st.integers(0, 999_999_999)
words = st.text(st.sampled_from("09aZ-"), min_size=1, max_size=4).filter(
    lambda word: not word.isdigit()
)
identifiers = st.one_of(
    numbers.map(lambda number: Identifier(False, number, "")),
    words.map(lambda word: Identifier(True, 0, word)),
)


def semantic(parts: st.SearchStrategy[int]) -> st.SearchStrategy[Semantic]:
    """Generate releases and pre-releases whose numbers come from `parts`."""

    def version(drawn: tuple[int, int, int, list[Identifier]]) -> Semantic:
        major, minor, patch, pre = drawn
        return Semantic(major, minor, patch, is_release=not pre, pre=tuple(pre))

    return st.tuples(parts, parts, parts, st.lists(identifiers, max_size=2)).map(version)


VALUES: dict[Format, st.SearchStrategy[int | Semantic | date]] = {
    Format.INTEGER: st.integers(0, 12),
    Format.SEMANTIC: semantic(st.integers(0, 1)),
    Format.DATE: st.dates(),
}
FORMATS = pytest.mark.parametrize("written", Format, ids=str)


@LAW
@given(semantic(numbers))
def test_parsing_the_string_of_a_semantic_version_returns_the_version(value: Semantic) -> None:
    assert parse(str(Version(value)), Format.SEMANTIC) == Version(value)


@LAW
@given(st.dates())
def test_parsing_the_string_of_a_date_returns_the_version(value: date) -> None:
    assert parse(str(Version(value)), Format.DATE) == Version(value)


@FORMATS
@LAW
@given(text=st.text(st.sampled_from("012349-.+xaZ \u0661\n"), max_size=12))
def test_each_version_has_a_single_form(written: Format, text: str) -> None:
    version = parse(text, written)
    assert version is None or str(version) == text


@FORMATS
@LAW
@given(data=st.data())
def test_the_order_is_total(written: Format, data: st.DataObject) -> None:
    one, two, three = (Version(data.draw(VALUES[written])) for _ in range(3))
    assert (one < two) + (one == two) + (one > two) == 1
    assert (one == two) == (str(one) == str(two))
    assert not one < two < three or one < three


MIXED = st.one_of(*VALUES.values()).map(Version)


@LAW
@given(one=MIXED, other=MIXED)
def test_versions_of_different_formats_are_ordered_by_format(one: Version, other: Version) -> None:
    """Integers come before semantic versions, and both come before dates."""
    assert (one < other) + (one == other) + (one > other) == 1
    assert (one <= other) == (not one > other)
    assert (one >= other) == (not one < other)
    if one.written is not other.written:
        assert (one < other) == ([*Format].index(one.written) < [*Format].index(other.written))
    assert parse(str(one), *Format) == one
