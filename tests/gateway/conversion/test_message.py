"""Messages: query and header fields are converted link by link, together with the body."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion, Conversion
from gateway.conversion.change import Change, inverse, whole_body
from gateway.conversion.changes.python import call_for_parameter, call_python
from gateway.conversion.changes.rename import rename, rename_parameter
from gateway.conversion.changes.to_header import HeaderPlace, QueryPlace, carry
from gateway.conversion.changes.type import retype
from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.document import PLAIN, Document
from gateway.conversion.message import Message, MessageView, QueryStep, QueryWalk
from gateway.conversion.parameter_change import (
    ParameterChange,
    ParameterLine,
    in_direction,
    parse_query,
    write_fields,
    write_query,
)
from gateway.conversion.scalars import Type
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.world import LAW

V1, V2, V3 = (Version(each, str(each)) for each in (1, 2, 3))


def link(
    older: Version,
    *changes: Change,
    query: tuple[ParameterChange, ...] = (),
    headers: tuple[ParameterChange, ...] = (),
) -> VersionLink:
    newer = V2 if older == V1 else V3
    return VersionLink(
        older, newer, tuple(changes), query=query, headers=headers, needs_message=True
    )


# Version 3 has `from` in the body. Version 2 has it in the query, and has `total` in the body.
LINKS = (
    link(
        V1,
        whole_body(inverse(carry(("p",), QueryPlace("page")))),
        whole_body(carry(("total",), HeaderPlace("X-Total"))),
        headers=(rename_parameter("X-Total", "X-Count"),),
    ),
    VersionLink(V1, V2, (rename((), ("b",), ("a",)),)),
    link(
        V2,
        whole_body(carry(("from",), QueryPlace("start"))),
        query=(rename_parameter("start", "page"),),
        headers=(rename_parameter("X-Sum", "X-Total"),),
    ),
)


def message(header: str = "", query: str = "", status: int | None = None) -> Message:
    name, _, value = header.partition(": ")
    fields = [ParameterLine(name.lower(), name, value)] if header else []
    lines = parse_query(query)
    return Message(headers=fields, query=lines, status=status, way=QueryWalk(lines, ()))


def test_a_body_is_converted_without_a_message() -> None:
    assert BodyConversion(LINKS, Direction.UP).convert({"a": 1}, PLAIN) == {"b": 1}


@pytest.mark.parametrize("up", [True, False])
def test_query_parameters_of_operations_are_removed_and_added_only_once(up: bool) -> None:
    ends = (V1, V2) if up else (V2, V1)
    version_step = QueryStep(*ends, (), frozenset({"id"}), tuple(parse_query("do=x")))
    lines = parse_query("id=7&a=1")
    surrounding = Message(query=[*lines], way=QueryWalk(lines, (version_step,)))
    links = (link(V1), link(V1, whole_body(carry(("p",), QueryPlace("p")))))
    direction = Direction.UP if up else Direction.DOWN
    conversion = BodyConversion(links if up else links[::-1], direction)
    made = conversion.convert({} if up else {"p": "1"}, replace(PLAIN, message=surrounding))
    assert made == {}
    assert write_query(surrounding.query) == ("do=x&a=1" if up else "do=x&a=1&p=1")


def test_a_conversion_needs_the_message_if_one_of_its_links_needs_it() -> None:
    bare = VersionLink(V2, V3, (), query=(rename_parameter("y", "x"),))
    conversion = Conversion((link(V1), bare), Direction.UP)
    body = conversion.for_request("GET")
    assert body is not None
    assert body.links == conversion.links
    assert (body.needs_message, conversion.needs_message) == (True, True)
    assert [len(version_step.rewrites) for version_step in conversion.query_steps("HEAD")] == [0, 1]
    assert Conversion((bare,), Direction.UP).for_request("GET") is None


def test_a_carrying_conversion_has_only_the_changes_that_carry_values() -> None:
    carrying = BodyConversion(LINKS, Direction.UP).carrying
    assert [len(each.changes) for each in carrying.links] == [2, 0, 1]
    surrounding = message("X-Count: 9", "x=1")
    copy = surrounding.copied()
    assert carrying.convert({"a": 1}, replace(PLAIN, message=surrounding)) == {"a": 1, "total": "9"}
    assert surrounding.headers == []
    surrounding.restore()
    assert surrounding == copy


def test_a_carrying_conversion_does_not_apply_the_default_of_a_carried_value() -> None:
    moved = whole_body(carry(("next",), HeaderPlace("X-Next"), default=None))
    conversion = BodyConversion((link(V1, moved),), Direction.UP)
    for header, made, apart in (
        ("", {"next": None}, {}),
        ("X-Next: b", {"next": "b"}, {"next": "b"}),
    ):
        assert conversion.convert({}, replace(PLAIN, message=message(header))) == made
        assert conversion.carrying.convert({}, replace(PLAIN, message=message(header))) == apart


@pytest.mark.parametrize(
    ("headers", "query", "place"),
    [
        ([("X-Count", "x")], "", "the header field 'X-Count': expected true or false"),
        ([], "page=x", "the query parameter 'page': expected true or false"),
        ([("X-Count", "true")], "page=false", "/a: expected a boolean"),
    ],
)
def test_an_error_names_the_header_field_or_parameter_that_the_client_sent(
    headers: list[tuple[str, str]], query: str, place: str
) -> None:
    """A change moves the values into the body, where a later change refuses them."""
    links = (
        link(
            V1,
            rename((), ("b",), ("a",)),
            whole_body(carry(("total",), HeaderPlace("X-Total"))),
            whole_body(carry(("page",), QueryPlace("p"))),
            headers=(rename_parameter("X-Total", "X-Count"),),
            query=(rename_parameter("p", "page"),),
        ),
        link(
            V2,
            rename((), ("sum",), ("total",)),
            retype((), ("sum",), Type.BOOLEAN, Type.TEXT),
            retype((), ("page",), Type.BOOLEAN, Type.TEXT),
            retype((), ("b",), Type.TEXT, Type.BOOLEAN),
        ),
    )
    message = Message(
        headers=[ParameterLine(name.lower(), name, value) for name, value in headers],
        query=parse_query(query),
    )
    with pytest.raises(ConversionError, match=f"^{place}"):
        BodyConversion(links, Direction.UP).convert({"a": 1}, replace(PLAIN, message=message))


@pytest.mark.parametrize("status", [None, 200])
def test_a_function_for_a_header_field_reads_the_message_before_its_conversion(
    status: int | None,
) -> None:
    """The function reads the same message whether or not a change of bodies needs the message."""
    seen: list[tuple[object, object]] = []

    def look(text: object, message: MessageView) -> object:
        seen.append((message.query, message.headers))
        return f"{text}+"

    change = call_for_parameter("X-A", look, look)
    links = (
        link(V1, headers=(change,), query=(rename_parameter("b", "a"),)),
        link(V1, whole_body(carry(("p",), QueryPlace("p"))), headers=(change,)),
        link(V2, headers=(change,), query=(rename_parameter("c", "b"),)),
    )
    up = status is None
    conversion = Conversion(links if up else links[::-1], Direction.UP if up else Direction.DOWN)
    alone = message("X-A: 1", "a=1&p=2", status)
    fields = conversion.fields("GET", status, [(b"X-A", b"1")], alone)
    apart = seen[:]
    seen.clear()
    surrounding = message("X-A: 1", "a=1&p=2", status)
    body = conversion.for_request("GET") if up else conversion.for_response("GET", 200)
    assert body is not None
    body.convert({}, replace(PLAIN, message=surrounding))
    assert write_fields(surrounding.headers) == fields == [(b"X-A", b"1+++")]
    assert seen == apart == [({"a": ["1"], "p": ["2"]}, {"x-a": ["1"]})] * 3


MESSAGE = Message(
    "POST",
    "/v1/orders/a%20b",
    "/v{version}/orders/{id}",
    {"version": "1", "id": "a%20b"},
    "/orders/a%20b",
    None,
    [ParameterLine("x-a", "X-A", "1 "), ParameterLine("x-a", "x-a", "2")],
    parse_query("p=1&p=2&q"),
)


def seen(value: Document, message: MessageView) -> Document:
    return {
        "value": value,
        "direction": message.direction,
        "method": message.method,
        "path": message.path,
        "operation": message.operation,
        "path_parameters": dict(message.path_parameters),
        "query": dict(message.query),
        "headers": dict(message.headers),
        "status": message.status,
        "fields": message.fields,
    }


def refused(value: Document, message: MessageView) -> Document:
    raise ValueError(value, message)


def test_a_message_view_shows_all_properties_of_the_message() -> None:
    fields: dict[str, Document] = {"a": 1, "b": [2]}
    call_python((), ("a",), seen, abs).up.step(fields, replace(PLAIN, message=MESSAGE))
    assert fields["a"] == {
        "value": 1,
        "direction": "up",
        "method": "POST",
        "path": "/v1/orders/a%20b",
        "operation": "POST /v{version}/orders/{id}",
        "path_parameters": {"version": "1", "id": "a b"},
        "query": {"p": ["1", "2"], "q": [""]},
        "headers": {"x-a": ["1", "2"]},
        "status": None,
        "fields": {"a": 1, "b": [2]},
    }


def test_the_cause_of_an_error_names_the_python_function_that_raised() -> None:
    with pytest.raises(ConversionError) as caught:
        call_python((), ("a",), refused, refused).up.step({"a": 1}, PLAIN)
    assert "test_message:refused raised ValueError" in caught.value.cause


def test_a_message_view_parses_the_query_and_header_fields_once() -> None:
    """A function for a parameter may be called for thousands of values."""
    view = MessageView("up", MESSAGE, dict)
    assert view.query is view.query
    assert view.headers is view.headers
    assert view.query != view.headers


V1, V2, V3 = VERSIONS = tuple(Version(each, str(each)) for each in (1, 2, 3))
QUERY_STEPS = (
    QueryStep(
        V1, V2, in_direction([rename_parameter("b", "a")], upwards=True), frozenset({"id"}), ()
    ),
    QueryStep(
        V2,
        V3,
        in_direction([rename_parameter("c", "b")], upwards=True),
        frozenset(),
        tuple(parse_query("do=x")),
    ),
)
WALK = QueryWalk(parse_query("a=1&id=7"), QUERY_STEPS)


def test_version_step_returns_the_query_step_between_two_versions() -> None:
    assert WALK.version_step(V1, V2) is QUERY_STEPS[0]
    assert WALK.version_step(V2, V1) == QueryStep(V2, V1)


@LAW
@given(st.lists(st.sampled_from(["a=1", "b=2", "x=3"]), unique=True, max_size=1))
def test_to_service_converts_a_query_of_any_version_to_the_version_of_the_service(
    pairs: list[str],
) -> None:
    walk = QueryWalk(parse_query("&".join(pairs)), QUERY_STEPS)
    assert all(walk.to_service(version, walk.at(version)) == walk.service for version in VERSIONS)


def test_a_query_step_maps_a_parameter_back_to_its_input() -> None:
    first, second = QUERY_STEPS
    assert second.origin(Beside("query parameter", ("c",))) == Beside("query parameter", ("b",))
    assert second.origin(Beside("query parameter", ("do",))) == Beside("path")
    assert second.origin(Beside("query parameter", ("c", "do"))) == Beside(
        "query parameter", ("b",)
    )
    moved = first._replace(added=parse_query("no=1"))
    assert moved.origin(Beside("query parameter", ("no",))) == Beside("query parameter", ("id",))
    assert moved.origin(Beside("header field", ("no",))) == Beside("header field", ("no",))
    assert moved.origin(("no",)) == ("no",)
