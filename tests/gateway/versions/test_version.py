"""Formats of labels: whole numbers, semantic versions and dates."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.versions.version import Format, Parsed, Semantic, Version, parse
from tests.gateway.world import LAW

# Digits of many scripts, and characters that lenient parsers ignore.
NEARLY = st.text(
    st.sampled_from(
        "0123456789\u0660\u0661\u0662\uff11\uff12²\u0966\u06f1 \t\n\r\0\x0b\x85\u2009_+-.,vVxe"
    ),
    max_size=11,
)


@pytest.mark.parametrize("text", ["0", "1", "2", "9", "10", "4711", "999999999"])
def test_a_whole_number_is_a_version(text: str) -> None:
    assert parse(text, Format.INTEGER) == Parsed(int(text))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "01", "00", "1.0", "1.", ".1", "v1", "V1", "1a", "foo1", "one"),
        *(
            *("1,2", "1,1", "1;2", "1/2", "1 2", " 1", "1 ", "\t1", "1\t", "1\n", "1\r\n", "\n1"),
            "1\0",
        ),
        *("+1", "-1", "1_0", "0x1", "0b1", "1e0", "1e1", "%31", "1%20"),
        *(
            *("\u0661", "\uff11", "²", "\u0967", "\U0001d7cf", "\u2460", "\u2160", "1\u0661"),
            *("1\u0301", "1\u200b", "\ufeff1"),
        ),
        *("1000000000", "9" * 5000, "1" + "0" * 5000),
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_other_strings_are_not_whole_numbers(text: str) -> None:
    assert parse(text, Format.INTEGER) is None


@LAW
@given(st.text() | NEARLY)
def test_only_the_canonical_spelling_is_read(text: str) -> None:
    parsed = parse(text, Format.INTEGER)
    canonical = (
        0 < len(text) < 10 and set(text) <= set("0123456789") and text == (text.lstrip("0") or "0")
    )
    assert parsed == (Parsed(int(text)) if canonical else None)


@LAW
@given(st.integers(1, 9), st.integers(1, 9))
def test_versions_are_ordered_by_rank_and_not_by_label(one: int, other: int) -> None:
    first, second = Version(one, f"v{9 - one}"), Version(other, f"v{9 - other}")
    assert (first < second, first == second) == (one < other, one == other)
    assert str(first) == f"v{9 - one}"


class TestSemantic:
    """Semantic Versioning 2.0.0, without build metadata."""

    @pytest.mark.parametrize(
        "text",
        [
            *("0.0.0", "1.2", "1.2.3", "10.20.30", "999999999.0.0", "1.0.0-alpha", "1.0.0-alpha.1"),
            *("1.0.0-0", "1.0.0-0.3.7", "1.0.0-x.7.z.92", "1.0.0-x-y-z.--", "1.0.0-0a", "1.0.0--1"),
            *("1.0.0-01a", "1.0.0-RC.1", "1.0.0-999999999"),
        ],
    )
    def test_a_canonical_string_is_a_version(self, text: str) -> None:
        parsed = parse(text, Format.SEMANTIC)
        assert parsed is not None
        assert parsed.is_release == ("-" not in text)

    @pytest.mark.parametrize(
        "text",
        [
            *(
                *("", "1", "1.2-rc.1", "1.2.3.4", "v1.2.3", "1.2.x", "1.2+", "01.2.3", "1.02.3"),
                "1.2.03",
            ),
            *("1.2.3-", "1.2.3-.", "1.2.3-a..b", "1.2.3-01", "1.2.3-a.01", "1.2.3-a_b", "1.2.3+a"),
            *(
                *("1.2.3-a+b", " 1.2.3", "1.2.3 ", "1.2.3\n", "1.2.3-a\n", "1.2.\u0663"),
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
        found = [parse(label, Format.SEMANTIC) for label in labels]
        numbers = [each.number for each in found if each and isinstance(each.number, Semantic)]
        assert len(numbers) == len(labels)
        assert sorted(numbers) == numbers

    def test_a_missing_patch_number_is_zero(self) -> None:
        assert parse("1.4", Format.SEMANTIC) == parse("1.4.0", Format.SEMANTIC)


class TestDate:
    """Dates of RFC 3339, section 5.6, or months, with an optional suffix."""

    @pytest.mark.parametrize(
        ("text", "day", "is_release"),
        [
            ("2026-01-31", date(2026, 1, 31), True),
            ("2024-02-29", date(2024, 2, 29), True),
            ("2024-01", date(2024, 1, 1), True),
            ("2024-09-30.acacia", date(2024, 9, 30), True),
            ("2024-01-01-preview", date(2024, 1, 1), False),
            ("2024-07-rc.1", date(2024, 7, 1), False),
        ],
    )
    def test_a_calendar_date_is_a_version(self, text: str, day: date, is_release: bool) -> None:
        assert parse(text, Format.DATE) == Parsed(day, is_release)

    @pytest.mark.parametrize(
        "text",
        [
            *("", "1", "2023-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "0000-01-01"),
            *("2026-1-31", "26-01-31", "20260131", "2026-W05-6", "2026-01-31T00:00", "2026"),
            *("2026-01-31 ", "\n2026-01-31", "2026-01-31\n", "2026-01-\u0663\u0661", "+2026-01-31"),
            *("2026/01/31", "2026-01-31-", "2026-01-31.", "2026-01-31-\xe9", f"2026-01-{'a' * 60}"),
        ],
        ids=lambda text: ascii(text[:12]),
    )
    def test_other_strings_are_not_versions(self, text: str) -> None:
        assert parse(text, Format.DATE) is None
