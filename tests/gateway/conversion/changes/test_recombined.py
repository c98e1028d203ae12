"""Recombined parameters: several parameters that are converted together, such as two into one."""

import pytest

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.parameter_change import (
    in_direction,
    recombined,
    rewrite_fields,
    rewrite_query,
)


class TestRecombined:
    CHANGE = recombined(
        ("a", "b"),
        ("c",),
        lambda found: dict(zip("ab", found["c"].split("-"), strict=True)),
        lambda found: {"c": f"{found['a']}-{found.get('b', '')}"},
    )

    @pytest.mark.parametrize(
        ("newer", "older"), [("x=1&a=%C3%A9&b=2&y", "x=1&c=%C3%A9-2&y"), ("x", "x")]
    )
    def test_two_query_parameters_become_one_and_back(self, newer: str, older: str) -> None:
        assert rewrite_query(newer, in_direction([self.CHANGE], upwards=False)) == older
        assert rewrite_query(older, in_direction([self.CHANGE], upwards=True)) == newer

    def test_two_header_fields_become_one(self) -> None:
        lines = [(b"A", b"1"), (b"X", b"y"), (b"b", b"2")]
        assert rewrite_fields(lines, in_direction([self.CHANGE], upwards=False)) == [
            (b"c", b"1-2"),
            (b"X", b"y"),
        ]

    @pytest.mark.parametrize(
        ("query", "reason"),
        [
            ("a=1&a=2", "the query parameter 'a': occurs twice"),
            ("a=1&c=2", "the query parameter 'c': already exists"),
        ],
    )
    def test_a_repeated_or_existing_parameter_is_refused(self, query: str, reason: str) -> None:
        with pytest.raises(ConversionError, match=reason):
            rewrite_query(query, in_direction([self.CHANGE], upwards=False))

    def test_a_value_that_cannot_be_converted_is_refused(self) -> None:
        with pytest.raises(ConversionError, match="the query parameter 'c': "):
            rewrite_query("c=1-2-3", in_direction([self.CHANGE], upwards=True))

    def test_an_unchanged_value_keeps_its_bytes(self) -> None:
        same = recombined(("a",), ("a",), dict, dict)
        assert rewrite_query("a=%41+b", in_direction([same], upwards=False)) == "a=%41+b"
