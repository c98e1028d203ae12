"""The formats of tables, times and client names in the admin port and the commands."""

import pytest

from gateway.findings.formatting import (
    ANONYMOUS_TEXT,
    client_text,
    columns,
    compared_text,
    duration_text,
    format_time,
    period_text,
    sentence,
)
from gateway.usage.totals import OTHERS


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ((), ["NAME   N", "a      1", "bcdef  23"]),
        ((1,), ["NAME    N", "a       1", "bcdef  23"]),
        ((0, 1), [" NAME   N", "    a   1", "bcdef  23"]),
    ],
)
def test_columns_are_aligned(right: tuple[int, ...], expected: list[str]) -> None:
    rows = [("NAME", "N"), ("a", "1"), ("bcdef", "23")]
    if right == (0, 1):
        expected = [" NAME   N", "    a   1", "bcdef  23"]
    assert list(columns(rows, right)) == expected


def test_lines_have_no_trailing_spaces() -> None:
    assert list(columns([("a", "long"), ("b", "")])) == ["a  long", "b"]


def test_control_characters_of_a_cell_are_escaped() -> None:
    rows = [("FIELD", "N"), ("/a\n/\x1b[2J\x9b\u202e", "1")]
    assert list(columns(rows)) == ["FIELD                   N", r"/a\n/\x1b[2J\x9b\u202e  1"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.00412, "4.12 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (1.234, "1.23 s"),
        (1234.5, "1,234.50 s"),
    ],
)
def test_a_duration_has_three_digits(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("client", "text"), [(None, OTHERS), ("", ANONYMOUS_TEXT), ("acme", "acme")]
)
def test_anonymous_and_other_clients_have_a_text(client: str | None, text: str) -> None:
    assert client_text(client) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1.999, "1970-01-01T00:00:01Z"),
        (1_798_761_599.0, "2026-12-31T23:59:59Z"),
    ],
)
def test_a_time_is_formatted_as_rfc_3339(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [("it is lost", "It is lost."), ("is it up?", "Is it up?"), ("A. B.", "A. B."), ("", ".")],
)
def test_a_sentence_has_an_initial_capital_and_one_final_mark(text: str, told: str) -> None:
    assert sentence(text) == told


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "a moment"),
        (1.5, "1 second"),
        (59.9, "59 seconds"),
        (60, "1 minute"),
        (119, "119 seconds"),
        (3599, "59 minutes"),
        (3600, "1 hour"),
        (86_399, "23 hours"),
        (86_400, "1 day"),
        (1.6 * 86_400, "38 hours"),
        (2.9 * 86_400, "2 days"),
    ],
)
def test_a_period_is_rounded_down(seconds: float, text: str) -> None:
    """`2 days` means at least two days."""
    assert period_text(seconds) == text


def test_the_count_of_compared_responses_uses_singular_and_plural() -> None:
    assert compared_text(1, 1) == "1 response compared, 1 differs"
    assert compared_text(2, 0) == "2 responses compared, 0 differ"
