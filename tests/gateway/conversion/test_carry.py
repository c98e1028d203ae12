"""Carry: a value in the body of one version, beside the body in the other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.carry import Carry, HeaderPlace, QueryPlace
from gateway.conversion.document import MISSING, PLAIN, JsonObject
from gateway.conversion.message import Message
from gateway.conversion.parameter_change import ParameterLine, ParameterLines
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import Json, fails
from tests.gateway.world import LAW

FORM = replace(PLAIN, typed=False, digits=str)
HEADER, QUERY = HeaderPlace("X-A"), QueryPlace("a")


def header(value: str) -> ParameterLines:
    """Return the header field X-A alone."""
    return [ParameterLine("x-a", "X-A", value)]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Type.TEXT, "a b", "a b"),
        (Type.NUMBER, 12, "12"),
        (Type.BOOLEAN, True, "true"),
        (Type.BOOLEAN, False, "false"),
    ],
)
def test_both_ways(kind: Type, value: Json, text: str) -> None:
    change = Carry(("m", "a"), HEADER, kind)
    body: JsonObject = {"": {"x": 1, "m": {"a": value}}}
    message = Message(status=200)
    form = replace(PLAIN, message=message)
    change.down(body, form)
    assert (body, message.headers) == ({"": {"x": 1}}, header(text))
    change.up(body, form)
    assert (body, message.headers) == ({"": {"x": 1, "m": {"a": value}}}, [])


@LAW
@given(
    st.fixed_dictionaries({"u": st.integers()}, optional={"a": st.text()}),
    st.sampled_from([None, 200]),
)
def test_there_and_back_with_any_text_in_a_query(
    document: dict[str, Json], status: int | None
) -> None:
    body: JsonObject = {"": dict(document)}
    form = replace(PLAIN, message=Message(status=status))
    change = Carry(("a",), QUERY)
    change.down(body, form)
    left = {key: value for key, value in document.items() if key != "a" or status is not None}
    assert body == {"": left}
    change.up(body, form)
    assert body == {"": document}


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        (Carry(("a",), HEADER), {}, {}),
        (Carry(("a",), HEADER, default=None), {}, {"a": None}),
        (Carry(("a",), HEADER, default=1), {"a": 2}, {"a": 2}),
        (Carry(("a",), HEADER, default=None).for_patch(), {}, {}),
    ],
)
def test_an_empty_place(change: Carry, before: Json, after: Json) -> None:
    body: JsonObject = {"": before}
    change.up(body, replace(PLAIN, message=Message()))
    assert body == {"": after}


def test_null_is_left_out() -> None:
    body: JsonObject = {"": {"a": None}}
    message = Message()
    Carry(("a",), HEADER).down(body, replace(PLAIN, message=message))
    assert (body, message.headers) == ({"": {}}, [])


def test_without_a_message_nothing_is_moved() -> None:
    body: JsonObject = {"": {"a": "b"}}
    for change in (Carry(("a",), HEADER).up, Carry(("a",), HEADER).down):
        change(body, PLAIN)
    assert body == {"": {"a": "b"}}


def test_a_form_has_texts_alone() -> None:
    change, message = Carry(("a",), HEADER, Type.NUMBER), Message()
    body: JsonObject = {"": {"a": "7"}}
    form = replace(FORM, message=message)
    change.down(body, form)
    assert message.headers == header("7")
    change.up(body, form)
    assert body == {"": {"a": "7"}}


@pytest.mark.parametrize(
    ("kind", "text", "body", "place", "reason"),
    [
        (Type.NUMBER, "1,5", {}, "", "is not a number"),
        (Type.BOOLEAN, "1", {}, "", "is not a boolean"),
        (
            Type.TEXT,
            "1",
            {"m": {"a": 2}},
            "//m/a",
            "is there already, and the header field 'X-A' is to become it",
        ),
        (Type.TEXT, "1", {"m": "x"}, "//m", "expected an object, found a string"),
        (Type.TEXT, "1", {"m": None}, "//m", "expected an object, found null"),
        (Type.TEXT, "1", [], "/", "expected an object, found an array"),
    ],
)
def test_what_cannot_come_in(kind: Type, text: str, body: Json, place: str, reason: str) -> None:
    form = replace(PLAIN, message=Message(headers=header(text)))
    with fails(place, reason):
        Carry(("m", "a"), HEADER, kind).up({"": body}, form)


@pytest.mark.parametrize(
    ("kind", "body", "place", "reason"),
    [
        (Type.TEXT, {"m": {"a": 1}}, "//m/a", "expected a string, found a number"),
        (Type.NUMBER, {"m": {"a": "1"}}, "//m/a", "expected a number, found a string"),
        (Type.BOOLEAN, {"m": {"a": {}}}, "//m/a", "expected a boolean, found an object"),
        (Type.TEXT, {"m": 1}, "//m", "expected an object, found a number"),
        (
            Type.TEXT,
            {"m": {"a": "é"}},
            "//m/a",
            "the header field 'X-A' can hold printable ASCII only",
        ),
    ],
)
def test_what_cannot_go_out(kind: Type, body: Json, place: str, reason: str) -> None:
    with fails(place, reason):
        Carry(("m", "a"), HEADER, kind).down({"": body}, replace(PLAIN, message=Message()))


@pytest.mark.parametrize("body", [None, True, 5, "x", [1], [{"m": {"a": "1"}}]])
def test_a_body_that_is_no_object_has_nothing_to_move(body: Json) -> None:
    message = Message()
    form = replace(PLAIN, message=message)
    holder: dict[str, Json] = {"": body}
    Carry(("m", "a"), HEADER, default="x").up(holder, form)
    Carry(("m", "a"), HEADER).down(holder, form)
    assert (holder, message.headers) == ({"": body}, [])


def test_what_it_is() -> None:
    change = Carry(("m", "a"), HEADER, default=1)
    assert (change.scopes, change.touches) == ((), (("", "m", "a"),))
    assert change.for_patch().default is MISSING
