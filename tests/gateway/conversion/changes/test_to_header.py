"""Carry: a value that one version has in the body, and the other version outside the body."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.rename import rename_parameter
from gateway.conversion.changes.to_header import HeaderPlace, LinkPlace, QueryPlace, carry
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, JsonObject
from gateway.conversion.message import Message, Place, QueryStep, QueryWalk
from gateway.conversion.parameter_change import (
    ParameterLine,
    ParameterLines,
    in_direction,
    parse_query,
)
from gateway.conversion.scalars import Type
from gateway.versions.version import Version
from tests.gateway.conversion.documents import Json, fails
from tests.gateway.world import LAW

HEADER, QUERY = HeaderPlace("X-A"), QueryPlace("a")


def header(value: str) -> ParameterLines:
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
def test_a_carried_value_moves_from_the_body_to_a_header_field_and_back(
    kind: Type, value: Json, text: str
) -> None:
    change = carry(("m", "a"), HEADER, kind)
    body: JsonObject = {"": {"x": 1, "m": {"a": value}}}
    message = Message(status=200)
    form = replace(PLAIN, message=message)
    change.down.step(body, form)
    assert (body, message.headers) == ({"": {"x": 1}}, header(text))
    change.up.step(body, form)
    assert (body, message.headers) == ({"": {"x": 1, "m": {"a": value}}}, [])


@LAW
@given(
    st.fixed_dictionaries({"u": st.integers()}, optional={"a": st.text()}),
    st.sampled_from([None, 200]),
)
def test_any_string_survives_a_round_trip_through_the_query(
    document: dict[str, Json], status: int | None
) -> None:
    body: JsonObject = {"": dict(document)}
    form = replace(PLAIN, message=Message(status=status))
    change = carry(("a",), QUERY)
    change.down.step(body, form)
    left = {key: value for key, value in document.items() if key != "a" or status is not None}
    assert body == {"": left}
    change.up.step(body, form)
    assert body == {"": document}


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        (carry(("a",), HEADER), {}, {}),
        (carry(("a",), HEADER, default=None), {}, {"a": None}),
        (carry(("a",), HEADER, default=1), {"a": 2}, {"a": 2}),
        (carry(("a",), HEADER, default=None).for_patch(), {}, {}),
    ],
)
def test_an_upgrade_fills_an_absent_value_with_the_default(
    change: Change, before: Json, after: Json
) -> None:
    body: JsonObject = {"": before}
    change.up.step(body, replace(PLAIN, message=Message()))
    assert body == {"": after}


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
            "already exists, and the header field 'X-A' would become it",
        ),
        (Type.TEXT, "1", {"m": "x"}, "//m", "expected an object, found a string"),
        (Type.TEXT, "1", {"m": None}, "//m", "expected an object, found null"),
        (Type.TEXT, "1", [], "/", "expected an object, found an array"),
    ],
)
def test_an_upgrade_refuses_a_header_value_that_does_not_fit_the_body(
    kind: Type, text: str, body: Json, place: str, reason: str
) -> None:
    form = replace(PLAIN, message=Message(headers=header(text)))
    with fails(place, reason):
        carry(("m", "a"), HEADER, kind).up.step({"": body}, form)


@pytest.mark.parametrize(
    ("kind", "body", "place", "reason"),
    [
        (Type.TEXT, {"m": {"a": 1}}, "//m/a", "expected a string, found a number"),
        (Type.NUMBER, {"m": {"a": "1"}}, "//m/a", "expected a number, found a string"),
        (Type.BOOLEAN, {"m": {"a": {}}}, "//m/a", "expected a boolean, found an object"),
        (Type.TEXT, {"m": True}, "//m", "expected an object, found a boolean"),
        (
            Type.TEXT,
            {"m": {"a": "é"}},
            "//m/a",
            "the header field 'X-A' can contain only printable ASCII",
        ),
    ],
)
def test_a_downgrade_refuses_a_body_value_that_does_not_fit_the_header_field(
    kind: Type, body: Json, place: str, reason: str
) -> None:
    with fails(place, reason):
        carry(("m", "a"), HEADER, kind).down.step({"": body}, replace(PLAIN, message=Message()))


@pytest.mark.parametrize("body", [None, True, 5, "x", [1], [{"m": {"a": "1"}}]])
def test_a_body_that_is_not_an_object_is_unchanged(body: Json) -> None:
    message = Message()
    form = replace(PLAIN, message=message)
    holder: dict[str, Json] = {"": body}
    carry(("m", "a"), HEADER, default="x").up.step(holder, form)
    carry(("m", "a"), HEADER).down.step(holder, form)
    assert (holder, message.headers) == ({"": body}, [])


def test_a_carry_applies_to_the_whole_body_and_has_no_default_in_a_patch() -> None:
    change = carry(("m", "a"), HEADER, default=1)
    assert (change.scopes, change.touches) == ((), (("", "m", "a"),))
    holder: JsonObject = {"": {}}
    change.for_patch().up.step(holder, replace(PLAIN, message=Message()))
    assert holder == {"": {}}


V1, V2, V3 = (Version(each, str(each)) for each in (1, 2, 3))


def lines(*fields: str) -> ParameterLines:
    pairs = (field.split(": ", 1) for field in fields)
    return [ParameterLine(name.lower(), name, value) for name, value in pairs]


NEXT = LinkPlace("next", None, V1)


def texts(message: Message) -> list[str]:
    return [f"{line.name}: {line.value}" for line in message.headers]


@pytest.mark.parametrize(
    ("place", "field", "value"),
    [
        (HeaderPlace("X-A"), "X-A: b c", "b c"),
        (HeaderPlace("X-A", "<{value}>"), "X-A: <1>", "1"),
        (HeaderPlace("Location", "{path}/{value}", is_link=True), "Location: /v2/a/7", "7"),
        (HeaderPlace("Location", "{value}", is_link=True), "Location: /x", "/x"),
    ],
)
def test_a_header_field_is_read_and_written_by_its_template(
    place: HeaderPlace, field: str, value: str
) -> None:
    message = Message(path="/v1/a", target="/v2/a", status=201)
    assert place.applies(message)
    assert place.take(message) is None
    place.give(message, value, ("a",))
    assert texts(message) == [field]
    assert place.take(message) == value
    assert message.headers == []


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("/{value}", "/evil.test", "/.//evil.test"),
        ("{path}{value}", "\\evil.test", "/./\\evil.test"),
        ("//own.test/{value}", "/a", "//own.test//a"),
        ("{value}", "//evil.test", "//evil.test"),
    ],
)
def test_a_value_in_the_path_of_a_url_cannot_change_its_host(
    text: str, value: str, written: str
) -> None:
    message = Message(target="/", status=201)
    HeaderPlace("Location", text, is_link=True).give(message, value, ("a",))
    assert texts(message) == [f"Location: {written}"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (["X-A: 1", "x-a: 2"], "the header field 'X-A': occurs twice"),
        (["X-A: 1"], "the header field 'X-A': is not written as '<{value}>'"),
    ],
)
def test_a_repeated_header_field_or_one_that_does_not_match_its_template_is_refused(
    fields: list[str], reason: str
) -> None:
    with pytest.raises(ConversionError) as caught:
        HeaderPlace("X-A", "<{value}>").take(Message(headers=lines(*fields)))
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("/a/{value}/b", "/a" * 250_000),
        ("{path}/x/{value}", "/" * 500_000),
        ("a{value}a", "a"),
        ("{path}-{value}", "-"),
        ("a{path}-{value}", "-a"),
    ],
)
def test_a_header_value_that_does_not_match_is_scanned_in_one_pass(text: str, written: str) -> None:
    message = Message(headers=lines(f"Location: {written}"))
    place = HeaderPlace("location", text, is_link=True)
    if written == "-":
        assert place.take(message) == ""
    else:
        with pytest.raises(ConversionError, match="is not written as"):
            place.take(message)


@pytest.mark.parametrize("value", ["<" * 500_000, '</a>;\\"' * 70_000, " " * 500_000])
def test_a_malformed_link_field_is_scanned_in_one_pass(value: str) -> None:
    """A search that restarts at each character would take minutes."""
    message = Message(status=200, headers=[ParameterLine("link", "Link", value)])
    assert NEXT.take(message) is None


@pytest.mark.parametrize("place", [HeaderPlace("X-A"), QueryPlace("x-a")])
def test_a_carried_value_is_refused_if_the_location_already_has_a_value(place: Place) -> None:
    message = Message(headers=lines("X-A: 1"), query=lines("X-A: 1"))
    with pytest.raises(ConversionError, match="already exists, and /a would become it"):
        place.give(message, "2", ("a",))


def test_a_query_parameter_is_carried_only_in_requests() -> None:
    message = Message(query=parse_query("b=1&a%20b=c+d%C3%A9"))
    place = QueryPlace("a b")
    assert place.applies(message)
    assert not place.applies(Message(status=200))
    assert place.take(message) == "c dé"
    assert place.take(message) is None
    place.give(message, "é&", ("a",))
    assert [line.value for line in message.query] == ["1", "%C3%A9%26"]


@pytest.mark.parametrize(
    ("fields", "url", "left"),
    [
        (['Link: </a>; rel="next"'], "/a", []),
        (["Link: </a>;rel=next"], "/a", []),
        (
            ['Link: </b>; rel=first, </a>; title="a, \\"b"; rel="x next"'],
            "/a",
            ["Link: </b>; rel=first"],
        ),
        (["X: 1", "Link: </b>", "LINK: </a>; REL=next"], "/a", ["X: 1", "Link: </b>"]),
        (["Link: </b>; rel=nexty"], None, ["Link: </b>; rel=nexty"]),
        ([], None, []),
    ],
)
def test_a_link_is_taken_from_a_link_field_by_its_relation(
    fields: list[str], url: str | None, left: list[str]
) -> None:
    message = Message(status=200, headers=lines(*fields))
    assert NEXT.applies(message)
    assert not NEXT.applies(Message())
    assert NEXT.take(message) == url
    assert texts(message) == left


@pytest.mark.parametrize("url", ["/a>b", "/é", "/a\r\nX: 1"])
def test_a_string_that_is_not_a_url_is_refused_as_a_link(url: str) -> None:
    with pytest.raises(ConversionError) as caught:
        NEXT.give(Message(status=200), url, ("a",))
    assert str(caught.value) == "/a: would be no URL as the link 'next'"


UP = (
    QueryStep(V1, V2, in_direction([rename_parameter("after", "cursor")], upwards=True)),
    QueryStep(V2, V3, in_direction([rename_parameter("from", "after")], upwards=True)),
)
DOWN = (
    QueryStep(V3, V2, in_direction([rename_parameter("from", "after")], upwards=False)),
    QueryStep(V2, V1, in_direction([rename_parameter("after", "cursor")], upwards=False)),
)


@pytest.mark.parametrize(
    ("asked", "place", "written"),
    [
        ("cursor=a&size=2", LinkPlace("next", "cursor", V1), "/v3/a?from=b%26&size=2"),
        ("size=2&cursor=a", LinkPlace("next", "after", V2), "/v3/a?size=2&from=b%26"),
        ("", LinkPlace("next", "after", V2), "/v3/a?from=b%26"),
    ],
)
def test_a_query_parameter_of_a_link_is_read_and_written_in_its_version(
    asked: str, place: LinkPlace, written: str
) -> None:
    message = Message(target="/v3/a", status=200, way=QueryWalk(parse_query(asked), UP), back=DOWN)
    place.give(message, "b&", ("a",))
    assert texts(message) == [f'Link: <{written}>; rel="next"']
    assert place.take(message) == "b&"


def test_a_link_without_the_query_parameter_has_no_value() -> None:
    message = Message(status=200, headers=lines("Link: </a?b=1>; rel=next"))
    assert LinkPlace("next", "c", V1).take(message) is None
