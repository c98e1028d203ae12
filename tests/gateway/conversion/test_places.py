"""Places: what a header field, a link or a query parameter holds of a value."""

import pytest

from gateway.conversion.carry import HeaderPlace, LinkPlace, Place, QueryPlace
from gateway.conversion.changes.rename import Renamed
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.message import Message, QueryStep, QueryWalk
from gateway.conversion.parameter_change import (
    ParameterLine,
    ParameterLines,
    in_direction,
    parse_query,
)
from gateway.versions.version import Version

V1, V2, V3 = map(Version, (1, 2, 3))


def lines(*fields: str) -> ParameterLines:
    """Return header fields."""
    pairs = (field.split(": ", 1) for field in fields)
    return [ParameterLine(name.lower(), name, value) for name, value in pairs]


NEXT = LinkPlace("next", None, V1)


def texts(message: Message) -> list[str]:
    """Return the header fields of a message as texts."""
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
def test_a_header_field(place: HeaderPlace, field: str, value: str) -> None:
    message = Message(path="/v1/a", target="/v2/a", status=201)
    assert place.applies(message)
    assert place.take(message) is None
    place.give(message, value, ("a",))
    assert texts(message) == [field]
    assert place.take(message) == value
    assert message.headers == []


@pytest.mark.parametrize(
    ("text", "written", "value"),
    [
        ("/a/{value}", "http://service/v2/a/7", "7"),
        ("{path}/{value}", "https://other/a/b/7", "7"),
        ("{path}/{value}/x", "/a/x/7/x", "7"),
        ("a{value}-{path}-{value}", "/a1-2-3-{value}", "1-2"),
        ("{value}{path}", "/a", "/a"),
    ],
)
def test_a_url_may_be_absolute(text: str, written: str, value: str) -> None:
    message = Message(status=201, headers=lines(f"Location: {written}"))
    assert HeaderPlace("location", text, is_link=True).take(message) == value


def test_a_url_leads_to_its_receiver() -> None:
    message = Message(status=201, headers=lines("Location: /v2/a"), link=lambda url: f"/p{url}")
    assert HeaderPlace("Location", is_link=True).take(message) == "/p/v2/a"


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("/{value}", "/evil.test", "/.//evil.test"),
        ("{path}{value}", "\\evil.test", "/./\\evil.test"),
        ("//own.test/{value}", "/a", "//own.test//a"),
        ("{value}", "//evil.test", "//evil.test"),
    ],
)
def test_a_value_in_the_path_of_a_url_becomes_no_host(text: str, value: str, written: str) -> None:
    message = Message(target="/", status=201)
    HeaderPlace("Location", text, is_link=True).give(message, value, ("a",))
    assert texts(message) == [f"Location: {written}"]


def test_the_path_of_a_request_is_that_of_the_client() -> None:
    message = Message(path="/v1/a", target="/v2/a")
    HeaderPlace("X-A", "{path}#{value}").give(message, "b", ("a",))
    assert texts(message) == ["X-A: /v1/a#b"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (["X-A: 1", "x-a: 2"], "the header field 'X-A': stands twice"),
        (["X-A: 1"], "the header field 'X-A': is not written as '<{value}>'"),
    ],
)
def test_a_header_field_that_does_not_fit(fields: list[str], reason: str) -> None:
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
def test_a_text_that_does_not_fit_costs_one_pass(text: str, written: str) -> None:
    message = Message(headers=lines(f"Location: {written}"))
    place = HeaderPlace("location", text, is_link=True)
    if written == "-":
        assert place.take(message) == ""
    else:
        with pytest.raises(ConversionError, match="is not written as"):
            place.take(message)


@pytest.mark.parametrize("value", ["<" * 500_000, '</a>;\\"' * 70_000, " " * 500_000])
def test_a_link_field_costs_one_pass(value: str) -> None:
    """What is looked for again from each place takes minutes."""
    message = Message(status=200, headers=[ParameterLine("link", "Link", value)])
    assert NEXT.take(message) is None


@pytest.mark.parametrize("place", [HeaderPlace("X-A"), QueryPlace("x-a")])
def test_a_place_that_is_taken(place: Place) -> None:
    message = Message(headers=lines("X-A: 1"), query=lines("X-A: 1"))
    with pytest.raises(ConversionError, match="is there already, and /a is to become it"):
        place.give(message, "2", ("a",))


def test_a_query_parameter_is_of_requests_alone() -> None:
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
def test_a_link(fields: list[str], url: str | None, left: list[str]) -> None:
    message = Message(status=200, headers=lines(*fields))
    assert NEXT.applies(message)
    assert not NEXT.applies(Message())
    assert NEXT.take(message) == url
    assert texts(message) == left


@pytest.mark.parametrize("url", ["/a>b", "/é", "/a\r\nX: 1"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(ConversionError) as caught:
        NEXT.give(Message(status=200), url, ("a",))
    assert str(caught.value) == "/a: would be no URL as the link 'next'"


UP = (
    QueryStep(V1, V2, in_direction([Renamed("after", "cursor")], upwards=True)),
    QueryStep(V2, V3, in_direction([Renamed("from", "after")], upwards=True)),
)
DOWN = (
    QueryStep(V3, V2, in_direction([Renamed("from", "after")], upwards=False)),
    QueryStep(V2, V1, in_direction([Renamed("after", "cursor")], upwards=False)),
)


@pytest.mark.parametrize(
    ("asked", "place", "written"),
    [
        ("cursor=a&size=2", LinkPlace("next", "cursor", V1), "/v3/a?from=b%26&size=2"),
        ("size=2&cursor=a", LinkPlace("next", "after", V2), "/v3/a?size=2&from=b%26"),
        ("", LinkPlace("next", "after", V2), "/v3/a?from=b%26"),
    ],
)
def test_a_parameter_of_a_link(asked: str, place: LinkPlace, written: str) -> None:
    message = Message(target="/v3/a", status=200, way=QueryWalk(parse_query(asked), UP), back=DOWN)
    place.give(message, "b&", ("a",))
    assert texts(message) == [f'Link: <{written}>; rel="next"']
    assert place.take(message) == "b&"


def test_a_link_without_the_parameter() -> None:
    message = Message(status=200, headers=lines("Link: </a?b=1>; rel=next"))
    assert LinkPlace("next", "c", V1).take(message) is None
