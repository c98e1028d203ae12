"""Changes of query parameters and header fields. Other parameters keep their bytes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.default import add_parameter
from gateway.conversion.changes.join_list import join_repeated
from gateway.conversion.changes.python import text_function
from gateway.conversion.changes.rename import rename_parameter
from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.parameter_change import (
    FIELDS,
    ParameterChange,
    in_direction,
    inverse_parameter,
    parameter_sequence,
    place_before,
    recombined,
    rewrite_fields,
    rewrite_query,
    rewritten,
)
from tests.gateway.world import LAW

PAGE = rename_parameter("page", "p")


def words(known: dict[str, str]) -> Callable[[str], str]:
    def convert(word: str) -> str:
        if word not in known:
            raise ValueError("not a value in the map")
        return known[word]

    return convert


SORT = rewritten(
    "sort", words({"asc": "ASCENDING", "a b": "ä&="}), words({"ASCENDING": "asc", "ä&=": "a b"})
)
KEPT = rewritten("sort", lambda word: {"a": "b"}.get(word, word), lambda _: "other")
SIZE = add_parameter("page size", "2 0")


class TestQuery:
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
            (inverse_parameter(SIZE), "page+size=7&x", "x"),
            (inverse_parameter(SIZE), "page+size=7", None),
            (inverse_parameter(PAGE), "page=1", "p=1"),
        ],
    )
    def test_an_upgrade_rewrites_only_the_named_parameters_of_a_query(
        self, change: ParameterChange, older: str | None, newer: str | None
    ) -> None:
        assert rewrite_query(older, in_direction([change], upwards=True)) == newer

    @pytest.mark.parametrize(
        ("change", "query", "reason"),
        [
            (SORT, "sort=secret", "the query parameter 'sort': not a value in the map"),
            (SORT, "sort", "the query parameter 'sort': not a value in the map"),
            (
                PAGE,
                "p=1&page=2",
                "the query parameter 'page': already exists, and the query parameter 'p' would",
            ),
        ],
    )
    def test_an_error_names_the_query_parameter_with_the_invalid_value(
        self, change: ParameterChange, query: str, reason: str
    ) -> None:
        with pytest.raises(ConversionError) as error:
            rewrite_query(query, in_direction([change], upwards=True))
        assert str(error.value).startswith(reason)


@LAW
@given(st.text("p=&%1+ age?", max_size=12))
def test_a_renamed_query_parameter_survives_a_round_trip(query: str) -> None:
    try:
        newer = rewrite_query(query, in_direction([PAGE], upwards=True))
    except ConversionError:
        return
    if newer != query:
        back = rewrite_query(newer, in_direction([PAGE], upwards=False))
        assert back is not None
        assert back.count("=") == query.count("=")
        assert rewrite_query(back, in_direction([PAGE], upwards=True)) == newer


REFUSING = rewritten("page", words({}), words({}))


@pytest.mark.parametrize(
    ("query", "changes", "place"),
    [
        ("p=1", [PAGE, REFUSING], "the query parameter 'p'"),
        (
            "p=1",
            [inverse_parameter(rename_parameter("p", "page")), REFUSING],
            "the query parameter 'p'",
        ),
        ("p=1", [parameter_sequence(*(PAGE, REFUSING))], "the query parameter 'p'"),
        ("p=1", [parameter_sequence(*(PAGE, SIZE)), REFUSING], "the query parameter 'p'"),
        ("x=1", [PAGE, add_parameter("page", "1"), REFUSING], "the query parameter 'p'"),
        (
            "page=1",
            [add_parameter("page", "1"), join_repeated("page", ","), REFUSING],
            "the query parameter 'page'",
        ),
        (
            "from=1&size=2",
            [
                recombined(("page", "size"), ("from", "size"), lambda _: {"page": "1"}, dict),
                REFUSING,
            ],
            "the query parameters 'from', 'size'",
        ),
        (
            "from=1&to=2&x",
            [recombined(("p",), ("from", "to", "x2"), lambda _: {"p": "1"}, dict), PAGE, REFUSING],
            "the query parameters 'from', 'to'",
        ),
    ],
)
def test_an_error_names_the_query_parameter_that_the_client_sent(
    query: str, changes: list[ParameterChange], place: str
) -> None:
    with pytest.raises(ConversionError) as caught:
        rewrite_query(query, in_direction(changes, upwards=True))
    assert str(caught.value) == f"{place}: not a value in the map"


def test_an_error_names_the_header_field_that_the_client_sent() -> None:
    changes = (rename_parameter("X-New", "x-old"), rewritten("x-new", text_function(int), str))
    with pytest.raises(ConversionError, match=r"^the header field 'x-old': the Python function"):
        rewrite_fields([(b"X-Old", b"a")], in_direction(changes, upwards=True))
    other = Beside("query parameter", ("X-New",))
    assert place_before(other, in_direction(changes, upwards=True), FIELDS) == other
    assert place_before(("X-New",), in_direction(changes, upwards=True), FIELDS) == ("X-New",)


@pytest.mark.parametrize("text", ["a\r\nX-Evil: 1", "\n", "\0", "\x1b", "\x7f", "\u010d", "\udcff"])
def test_a_header_value_with_a_line_end_or_control_character_is_refused(text: str) -> None:
    changes = (rewritten("X-A", lambda _: text, str),)
    with pytest.raises(ConversionError, match="'X-A': would contain a character that is invalid"):
        rewrite_fields([(b"X-A", b"a")], in_direction(changes, upwards=True))


def test_a_header_value_may_contain_a_tab_and_latin_1_characters() -> None:
    changes = (rewritten("X-A", lambda _: "a\t\xe9", str),)
    made = rewrite_fields([(b"X-A", b"a")], in_direction(changes, upwards=True))
    assert made == [(b"X-A", b"a\t\xe9")]
