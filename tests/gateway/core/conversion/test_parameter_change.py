"""Query parameters and header fields: what no change speaks of keeps every byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversion.changes.default import Added
from gateway.core.conversion.changes.map import words
from gateway.core.conversion.changes.rename import Renamed
from gateway.core.conversion.document import ConversionError
from gateway.core.conversion.parameter_change import (
    ParameterChange,
    ParameterSequence,
    Recombined,
    Reversed,
    Rewritten,
    rewrite_fields,
    rewrite_query,
)
from tests.gateway.core.world import LAW

PAGE = Renamed("page", "p")
SORT = Rewritten(
    "sort",
    words({"asc": "ASCENDING", "a b": "ä&="}, None, keep=False),
    words({"ASCENDING": "asc", "ä&=": "a b"}, None, keep=False),
)
KEPT = Rewritten("sort", words({"a": "b"}, None, keep=True), words({}, "other", keep=True))
SIZE = Added("page size", "2 0")


class TestQuery:
    """Raw queries, as they stand behind the question mark."""

    @pytest.mark.parametrize(
        ("change", "older", "newer"),
        [
            (PAGE, "p=1", "page=1"),
            (PAGE, "a=%41&p=%31+&p&=&b", "a=%41&page=%31+&page&=&b"),
            (PAGE, "%70=1", "page=1"),
            (PAGE, "P=1&pp=2", "P=1&pp=2"),
            (PAGE, None, None),
            (PAGE, "", ""),
            (PAGE, "&&", "&&"),
            (SORT, "sort=asc&x=asc", "sort=ASCENDING&x=asc"),
            (SORT, "sort=a%20b&sort=a+b", "sort=%C3%A4%26%3D&sort=%C3%A4%26%3D"),
            (KEPT, "sort=a&sort=c", "sort=b&sort=c"),
            (KEPT, "sort=%ff&sort=%zz+", "sort=%ff&sort=%zz+"),
            (SIZE, None, "page%20size=2%200"),
            (SIZE, "x", "x&page%20size=2%200"),
            (SIZE, "page+size=7", "page+size=7"),
            (Reversed(SIZE), "page+size=7&x", "x"),
            (Reversed(SIZE), "page+size=7", None),
            (Reversed(PAGE), "page=1", "p=1"),
        ],
    )
    def test_up(self, change: ParameterChange, older: str | None, newer: str | None) -> None:
        assert rewrite_query(older, [change.up]) == newer

    @pytest.mark.parametrize(
        ("change", "newer", "older"),
        [
            (PAGE, "page=1&x", "p=1&x"),
            (SORT, "sort=ASCENDING", "sort=asc"),
            (KEPT, "sort=z", "sort=other"),
            (SIZE, "page%20size=1&x", "x"),
            (Reversed(SIZE), "x", "x&page%20size=2%200"),
            (Added("x", None), "y", "y"),
        ],
    )
    def test_down(self, change: ParameterChange, newer: str | None, older: str | None) -> None:
        assert rewrite_query(newer, [change.down]) == older

    @pytest.mark.parametrize(
        ("change", "query", "reason"),
        [
            (SORT, "sort=secret", "the query parameter 'sort': not a value that the map has"),
            (SORT, "sort", "the query parameter 'sort': not a value that the map has"),
            (
                PAGE,
                "p=1&page=2",
                "the query parameter 'page' is there already, and 'p' is to become it",
            ),
        ],
    )
    def test_refused(self, change: ParameterChange, query: str, reason: str) -> None:
        with pytest.raises(ConversionError) as error:
            rewrite_query(query, [change.up])
        assert error.value.reason == reason

    def test_without_a_value_nothing_is_added(self) -> None:
        assert rewrite_query("y", [Added("x", None).up]) == "y"


class TestFields:
    """Header fields: names in any case, bytes kept."""

    def test_renamed(self) -> None:
        change = Renamed("X-Total", "X-Count")
        given = [(b"A", b"\xe9"), (b"x-count", b" 1 "), (b"a", b"")]
        assert rewrite_fields(given, [change.up]) == [
            (b"A", b"\xe9"),
            (b"X-Total", b" 1 "),
            (b"a", b""),
        ]

    def test_its_case_alone(self) -> None:
        assert rewrite_fields([(b"x-a", b"1")], [Renamed("X-A", "x-a").up]) == [(b"X-A", b"1")]

    def test_rewritten_and_added(self) -> None:
        changes: list[ParameterChange] = [
            Rewritten("X-Sort", str.upper, str.lower),
            Added("X-New", "n"),
        ]
        given = [(b"x-sort", b" a\t"), (b"X-SORT", b"b")]
        newer = [(b"x-sort", b"A"), (b"X-SORT", b"B"), (b"X-New", b"n")]
        assert rewrite_fields(given, [change.up for change in changes]) == newer
        older = rewrite_fields(newer, [change.down for change in reversed(changes)])
        assert older == [(b"x-sort", b"a"), (b"X-SORT", b"b")]


def test_a_sequence_runs_backwards_downwards() -> None:
    """A parameter that has another name, and is added where it is absent and kept."""
    change = ParameterSequence((Renamed("size", "s"), Added("size", "20", keep=True)))
    for older, newer in (("s=1", "size=1"), ("x", "x&size=20")):
        assert rewrite_query(older, [change.up]) == newer
    assert rewrite_query("x&size=20", [change.down]) == "x&s=20"


@LAW
@given(st.text("p=&%1+ age?", max_size=12))
def test_what_is_renamed_is_renamed_back(query: str) -> None:
    try:
        newer = rewrite_query(query, [PAGE.up])
    except ConversionError:
        return
    if newer != query:
        back = rewrite_query(newer, [PAGE.down])
        assert back is not None
        assert back.count("=") == query.count("=")
        assert rewrite_query(back, [PAGE.up]) == newer


class TestRecombined:
    """Several parameters that are others, or one, in the other version."""

    CHANGE = Recombined(
        ("a", "b"),
        ("c",),
        lambda found: dict(zip("ab", found["c"].split("-"), strict=True)),
        lambda found: {"c": f"{found['a']}-{found.get('b', '')}"},
    )

    @pytest.mark.parametrize(
        ("newer", "older"),
        [
            ("x=1&a=%C3%A9&b=2&y", "x=1&c=%C3%A9-2&y"),
            ("x", "x"),
        ],
    )
    def test_both_ways(self, newer: str, older: str) -> None:
        assert rewrite_query(newer, [self.CHANGE.down]) == older
        assert rewrite_query(older, [self.CHANGE.up]) == newer

    def test_a_header(self) -> None:
        lines = [(b"A", b"1"), (b"X", b"y"), (b"b", b"2")]
        assert rewrite_fields(lines, [self.CHANGE.down]) == [(b"c", b"1-2"), (b"X", b"y")]

    @pytest.mark.parametrize(
        ("query", "reason"),
        [
            ("a=1&a=2", "the query parameter 'a' stands twice"),
            ("a=1&c=2", "the query parameter 'c' is there already"),
        ],
    )
    def test_what_is_refused(self, query: str, reason: str) -> None:
        with pytest.raises(ConversionError, match=reason):
            rewrite_query(query, [self.CHANGE.down])

    def test_a_value_that_does_not_fit(self) -> None:
        with pytest.raises(ConversionError, match="the query parameter 'c': "):
            rewrite_query("c=1-2-3", [self.CHANGE.up])

    def test_what_stays_the_same_keeps_its_bytes(self) -> None:
        same = Recombined(("a",), ("a",), dict, dict)
        assert rewrite_query("a=%41+b", [same.down]) == "a=%41+b"
