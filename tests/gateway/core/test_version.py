"""Versions: one spelling each, ordered as numbers."""

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.version import Version, parse
from tests.gateway.core.world import LAW

NUMBERS = st.integers(0, 999_999_999)
# Digits of many scripts, and what lenient parsers read over.
NEARLY = st.text(
    st.sampled_from(
        "0123456789\u0660\u0661\u0662\uff11\uff12²\u0966\u06f1 \t\n\r\0\x0b\x85\u2009_+-.,vVxe"
    ),
    max_size=11,
)


@pytest.mark.parametrize("text", ["0", "1", "2", "9", "10", "4711", "999999999"])
def test_a_plain_number_is_a_version(text: str) -> None:
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
def test_anything_else_is_none(text: str) -> None:
    assert parse(text) is None


@LAW
@given(NUMBERS)
def test_spelling_and_parsing_are_inverse(number: int) -> None:
    assert parse(str(Version(number))) == Version(number)


@LAW
@given(st.text() | NEARLY)
def test_only_the_canonical_spelling_is_read(text: str) -> None:
    version = parse(text)
    canonical = (
        0 < len(text) < 10 and set(text) <= set("0123456789") and text == (text.lstrip("0") or "0")
    )
    assert (version is not None) == canonical
    if version is not None:
        assert str(version) == text


@LAW
@given(NUMBERS, NUMBERS)
def test_order_is_that_of_the_numbers(one: int, other: int) -> None:
    assert (Version(one) < Version(other)) == (one < other)
    assert (Version(one) == Version(other)) == (one == other)


def test_ten_comes_after_nine() -> None:
    versions = [Version(number) for number in (10, 9, 100, 1)]
    assert [str(version) for version in sorted(versions)] == ["1", "9", "10", "100"]


def test_a_version_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        Version(1).number = 2  # type: ignore[misc]
