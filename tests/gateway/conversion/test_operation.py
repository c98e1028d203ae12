"""Operations: how they are written, what they capture, and how a status differs."""

import re

import pytest

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.operation import (
    END,
    MappedOperation,
    converted_status,
    parse_operation,
)
from gateway.conversion.parameter_change import parse_query, write_query
from gateway.versions.version import Version

TWO = Version(2)


@pytest.mark.parametrize(
    ("text", "method", "captures"),
    [
        ("GET /pay", "GET", set()),
        ("/pay/{id}", None, {"id"}),
        ("POST  /v{version}/a/{rest*}", "POST", {"rest"}),
        ("GET /find?do=%66ind&id={id}", "GET", {"id"}),
        ("GET /find?no=C-{id}.x", "GET", {"id"}),
    ],
)
def test_what_is_written(text: str, method: str | None, captures: set[str]) -> None:
    pattern = parse_operation(text)
    assert (pattern.method, {*pattern.captures}) == (method, captures)
    assert pattern.text == text.replace("  ", " ").replace("%66", "f")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "pay",
            "'pay' is not an operation; write a method and a path, as in GET /users/{id}, or a",
        ),
        ("get /pay", "'get /pay' is not an operation; "),
        ("GET /a /b", "'GET /a /b' is not an operation; "),
        ("GET /pay?id", "'id' is no parameter; write name={capture} or name=value"),
        ("GET /pay?=1", "'=1' is no parameter; "),
        ("GET /{id}?id={id}", "'{id}' stands twice; every capture needs a name of its own"),
        ("GET /a?b={c", "'b={c' has no capture; write one, as in name={id} or name=C-{id}"),
        ("GET /a?b={c}{d}", "'b={c}{d}' has no capture; "),
        ("GET /{a}{b}", "segment '{a}{b}' has several captures"),
    ],
)
def test_what_is_no_operation(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_operation(text)


@pytest.mark.parametrize(
    ("query", "captured", "rest"),
    [
        ("id=7", {"id": "7"}, None),
        ("a=1&id=a%2fb+c&b", {"id": "a%2Fb%20c"}, "a=1&b"),
        ("id=", None, None),
        ("id", None, None),
        ("id=1&id=2", None, None),
        ("", None, None),
    ],
)
def test_a_query_that_is_captured(
    query: str, captured: dict[str, str] | None, rest: str | None
) -> None:
    found = parse_operation("/find?id={id}").read(parse_query(query))
    assert (None if found is None else found[0]) == captured
    if found is not None:
        assert write_query(found[1]) == rest


@pytest.mark.parametrize(
    ("query", "captured"),
    [
        ("no=C-7%2F8.x", {"id": "7%2F8"}),
        ("no=C-.x", None),
        ("no=7.x", None),
        ("no=C-7", None),
    ],
)
def test_a_part_of_a_value(query: str, captured: dict[str, str] | None) -> None:
    pattern = parse_operation("/find?no=C-{id}.x")
    found = pattern.read(parse_query(query))
    assert (None if found is None else found[0]) == captured
    if found is not None:
        assert write_query(pattern.written(found[0], [])) == query


def test_a_fixed_query() -> None:
    pattern = parse_operation("/rpc?do=a%20b")
    assert pattern.read(parse_query("do=a+b&x=1")) == ({}, parse_query("x=1"))
    assert pattern.read(parse_query("do=b")) is None
    assert write_query(pattern.written({}, parse_query("x=1"))) == "do=a%20b&x=1"


def test_a_path_and_a_query_that_are_written() -> None:
    pattern = parse_operation("/v{version}/a/{id}")
    assert pattern.path({"id": "a%2Fb"}, TWO) == "/v2/a/a%2Fb"
    assert write_query(parse_operation("/f?id={id}").written({"id": "a%2Fb%20"}, [])) == (
        "id=a%2Fb%20"
    )
    for dots in ("..", "%2e%2E", "a%2F..%2Fb"):
        with pytest.raises(ConversionError, match="'id' is a dot segment"):
            pattern.path({"id": dots}, TWO)
    assert parse_operation("/a/{rest*}").path({"rest": "b/c"}, TWO) == "/a/b/c"
    assert parse_operation("/a/{id}").path({"id": "7", END: "/"}, TWO) == "/a/7/"
    assert parse_operation("/a/{id}/").path({"id": "7", END: "/"}, TWO) == "/a/7/"


def test_methods_and_sides() -> None:
    get, every = parse_operation("GET /a"), parse_operation("/a")
    assert get.takes("GET")
    assert get.takes("HEAD")
    assert not get.takes("POST")
    assert every.takes("POST")
    operation = MappedOperation(get, every)
    assert operation.side(newer=True) is get
    assert operation.side(newer=False) is every
    assert operation != MappedOperation(get, every)


def test_a_status() -> None:
    statuses = {201: 200, 422: 400, 409: 400}
    assert [converted_status(statuses, each, upwards=False) for each in (201, 409, 404)] == [
        200,
        400,
        404,
    ]
    assert [converted_status(statuses, each, upwards=True) for each in (200, 400, 404)] == [
        201,
        422,
        404,
    ]
