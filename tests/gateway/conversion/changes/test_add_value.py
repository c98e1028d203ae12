"""`add_value` and `remove_value`: a value that lists of only one version contain."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.changes.add_value import AddValue, AddValueParameter, RemoveValue
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats.form_body import convert_form
from gateway.conversion.formats.json_patch import convert_patch
from gateway.conversion.message import Message
from gateway.conversion.parameter_change import (
    FIELDS,
    LINK,
    QUERY,
    ParameterChange,
    in_direction,
    parse_fields,
    parse_query,
    rewrite_query,
    write_fields,
    write_query,
)
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.conversion.documents import down, up
from tests.gateway.world import LAW

BRACKETS: dict[str, Any] = {"field": "expand[]", "value": "c"}
COMMAS: dict[str, Any] = {"field": "expand", "value": "c", "separator": ","}


def of_query(declared: dict[str, Any], *, header: bool = False) -> ParameterChange:
    change = AddValueParameter(**declared).parameter_change(BuildContext(Mistakes(), header=header))
    assert change is not None
    return change


def of_body(declared: dict[str, Any]) -> Change:
    change = AddValue(**declared).body_change(BuildContext(Mistakes()))
    assert change is not None
    return change


@pytest.mark.parametrize(
    ("declared", "older", "newer"),
    [
        (BRACKETS, None, "expand%5B%5D=c"),
        (BRACKETS, "a=1", "a=1&expand%5B%5D=c"),
        (BRACKETS, "expand[]=b&z=1", "expand[]=b&expand[]=c&z=1"),
        (BRACKETS, "expand%5B%5D=b", "expand%5B%5D=b&expand%5B%5D=c"),
        (BRACKETS, "expand=b", "expand=b&expand=c"),
        (BRACKETS, "expand[0]=b&expand[1]=d", "expand[0]=b&expand[1]=d&expand[2]=c"),
        (BRACKETS, "expand%5B0%5D=b", "expand%5B0%5D=b&expand%5B1%5D=c"),
        (BRACKETS, "expand[%30]=b", "expand[%30]=b&expand%5B1%5D=c"),
        (BRACKETS, "expanded=c", "expanded=c&expand%5B%5D=c"),
        (BRACKETS, "expand[0][x]=c", "expand[0][x]=c&expand%5B%5D=c"),
        (BRACKETS, f"expand[{'9' * 5000}]=b", f"expand[{'9' * 5000}]=b&expand%5B%5D=c"),
        ({**BRACKETS, "field": "expand[0]"}, None, "expand%5B0%5D=c"),
        ({**BRACKETS, "field": "expand"}, None, "expand=c"),
        (COMMAS, None, "expand=c"),
        (COMMAS, "expand=a", "expand=a,c"),
        (COMMAS, "expand=a,b", "expand=a,b,c"),
        (COMMAS, "expand[]=a,b", "expand[]=a,b,c"),
        ({**COMMAS, "separator": "|"}, "expand=a", "expand=a%7Cc"),
        ({**COMMAS, "separator": " "}, "expand=a%20b", "expand=a%20b%20c"),
    ],
)
def test_a_value_is_written_as_the_client_writes_the_list(
    declared: dict[str, Any], older: str | None, newer: str
) -> None:
    change = of_query(declared)
    assert rewrite_query(older, in_direction([change], upwards=True)) == newer
    assert rewrite_query(newer, in_direction([change], upwards=False)) == older


@pytest.mark.parametrize(
    ("declared", "query"),
    [
        (BRACKETS, "expand[]=c"),
        (BRACKETS, "expand%5b0%5d=%63"),
        (BRACKETS, "expand=a&expand=c&expand=b"),
        (COMMAS, "expand=a,c,b"),
        (COMMAS, "expand=a%2Cc"),
    ],
)
def test_a_value_that_the_client_sends_is_not_repeated(
    declared: dict[str, Any], query: str
) -> None:
    assert rewrite_query(query, in_direction([of_query(declared)], upwards=True)) == query


@pytest.mark.parametrize(
    ("declared", "newer", "older"),
    [
        (BRACKETS, "expand[0]=c&expand[1]=d&expand[2]=e", "expand[0]=d&expand[1]=e"),
        (BRACKETS, "expand[]=c&expand[]=d&expand[]=c", "expand[]=d"),
        (BRACKETS, "expand[]=c", None),
        (COMMAS, "expand=c,a", "expand=a"),
        (COMMAS, "expand=a,c,b", "expand=a,b"),
        (COMMAS, "expand=c%2Ca%2cb", "expand=a,b"),
        ({**COMMAS, "keep": True}, "expand=a,c", "expand=a,c"),
    ],
)
def test_a_downgrade_removes_the_value_and_closes_the_gap(
    declared: dict[str, Any], newer: str, older: str | None
) -> None:
    assert rewrite_query(newer, in_direction([of_query(declared)], upwards=False)) == older


@LAW
@given(
    st.sampled_from(("expand[]", "expand[0]", "expand")),
    st.sampled_from((None, ",", " ")),
    st.lists(st.sampled_from(("a", "b", "x%20y", "%C3%A9")), max_size=4),
    st.sampled_from(("expand[]", "expand%5B%5D", "expand", "indexed")),
)
def test_a_query_without_the_value_survives_a_round_trip(
    field: str, separator: str | None, values: list[str], name: str
) -> None:
    names = [f"expand[{index}]" if name == "indexed" else name for index in range(len(values))]
    query = "&".join(map("=".join, zip(names, values, strict=True))) or None
    change = of_query({"field": field, "value": "c", "separator": separator})
    above = rewrite_query(query, in_direction([change], upwards=True))
    assert rewrite_query(above, in_direction([change], upwards=False)) == query
    assert rewrite_query(above, in_direction([change], upwards=True)) == above


def test_the_separator_stays_plain_beside_changes_that_read_the_message() -> None:
    lines = of_query(COMMAS).up(parse_query("expand=a"), QUERY.of(Message()))
    assert write_query(lines) == "expand=a,c"


def test_links_in_responses_get_no_value_and_lose_it_for_the_older_version() -> None:
    change, link = of_query(BRACKETS), QUERY.of(LINK)
    lines = parse_query("limit=1")
    assert change.up(lines, link) == lines
    assert write_query(change.down(parse_query("expand[]=c&limit=1"), link)) == "limit=1"


@pytest.mark.parametrize(
    ("declared", "older", "newer"),
    [
        ({"field": "Prefer", "value": "c"}, [], [b"c"]),
        ({"field": "Prefer", "value": "c"}, [b"a"], [b"a", b"c"]),
        ({"field": "Prefer", "value": "c", "separator": ", "}, [b"a"], [b"a, c"]),
    ],
)
def test_a_header_field_gets_the_value(
    declared: dict[str, Any], older: list[bytes], newer: list[bytes]
) -> None:
    change = of_query(declared, header=True)
    before, after = ([(b"Prefer", value) for value in values] for values in (older, newer))
    assert write_fields(change.up(parse_fields(before), FIELDS)) == after
    assert write_fields(change.down(parse_fields(after), FIELDS)) == before
    known = parse_fields([(b"PREFER", b"c")])
    assert change.up(known, FIELDS) == known


def form(
    declared: dict[str, Any], direction: Direction, body: bytes, *, patch: bool = False
) -> str:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (of_body(declared),))
    return convert_form(
        body, BodyConversion((link.for_patch() if patch else link,), direction)
    ).decode()


@pytest.mark.parametrize(
    ("declared", "older", "newer"),
    [
        (BRACKETS, "amount=5", "amount=5&expand%5B%5D=c"),
        (BRACKETS, "expand[]=b&x=%7e", "expand[]=b&expand%5B%5D=c&x=%7e"),
        (BRACKETS, "expand[0]=b&x=1", "expand[0]=b&x=1&expand%5B1%5D=c"),
        (BRACKETS, "expand=b", "expand=b&expand=c"),
        (COMMAS, "expand=a", "expand=a%2Cc"),
        ({**BRACKETS, "field": "a[b][]"}, "a[b][]=x", "a[b][]=x&a%5Bb%5D%5B%5D=c"),
    ],
)
def test_a_form_gets_the_value(declared: dict[str, Any], older: str, newer: str) -> None:
    assert form(declared, Direction.UP, older.encode()) == newer
    assert form(declared, Direction.DOWN, newer.encode()) == older
    assert form(declared, Direction.UP, newer.encode()) == newer


def test_a_form_that_is_a_patch_gets_no_list() -> None:
    assert form(BRACKETS, Direction.UP, b"x=1", patch=True) == "x=1"
    assert form(BRACKETS, Direction.UP, b"expand[]=a", patch=True) == "expand[]=a&expand%5B%5D=c"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({}, {"expand": ["c"]}),
        ({"expand": ["a"]}, {"expand": ["a", "c"]}),
        ({"expand": None}, {"expand": None}),
    ],
)
def test_a_json_list_gets_the_value(older: Any, newer: Any) -> None:
    change = of_body(BRACKETS)
    assert up(change, older) == newer
    assert down(change, newer) == older
    assert up(change, newer) == newer


def test_the_list_may_be_in_other_objects() -> None:
    change = of_body({"field": "items[].meta.roles", "value": "c"})
    older = {"items": [{}, {"meta": None}, {"meta": "id_1"}, {"meta": {"roles": ["a"]}}]}
    newer = {
        "items": [
            {"meta": {"roles": ["c"]}},
            {"meta": None},
            {"meta": "id_1"},
            {"meta": {"roles": ["a", "c"]}},
        ]
    }
    assert up(change, older) == newer
    assert down(change, newer) == older


def test_a_value_that_is_no_list_is_refused_unless_a_separator_is_declared() -> None:
    with pytest.raises(ConversionError, match="expected an array, found a string"):
        up(of_body(BRACKETS), {"expand": "a"})
    assert up(of_body(COMMAS), {"expand": "a"}) == {"expand": "a,c"}
    assert down(of_body(COMMAS), {"expand": "a,c"}) == {"expand": "a"}
    with pytest.raises(ConversionError, match="expected an array, found a number"):
        up(of_body(COMMAS), {"expand": 7})


def test_a_json_patch_of_other_fields_is_unchanged() -> None:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (of_body(BRACKETS),)).for_patch()
    body = json.dumps([{"op": "replace", "path": "/a", "value": 1}]).encode()
    assert convert_patch(body, BodyConversion((link,), Direction.UP)) is body


def test_remove_value_is_the_inverse() -> None:
    change = RemoveValue(field="roles", value="user").body_change(BuildContext(Mistakes()))
    assert change is not None
    assert down(change, {"roles": ["a"]}) == {"roles": ["a", "user"]}
    assert up(change, {"roles": ["a", "user"]}) == {"roles": ["a"]}
