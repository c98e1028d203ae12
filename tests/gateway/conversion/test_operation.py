"""Operations: how they are parsed, and how the operation of a request is found."""

import re

import pytest

from gateway.conversion.operation import END, MappedOperation, OperationTable, parse_operation
from gateway.conversion.parameter_change import parse_query
from gateway.versions.version import Version

PAIRS: list[tuple[str | None, str | None]] = [
    ("GET /bookings/{id}", "GET /find?id={id}"),
    ("GET /search", "GET /find"),
    ("POST /search", "GET /find?q={q}&in={in}"),
    ("/bookings/{id}", "/booking/{number}"),
    ("PATCH /bookings/{id}", "PUT /booking/{id}"),
    ("/all/{rest*}", "/{rest*}"),
    (None, "GET /stats"),
    ("GET /one/{id}", "GET /lone?id={id}"),
    ("GET /two/{id}", "GET /lone?id=C-{id}"),
    ("/bookings/{any}", None),
    ("GET /three/{id}", None),
]
OPERATIONS = [
    MappedOperation(
        parse_operation(newer) if newer else None, parse_operation(older) if older else None
    )
    for newer, older in PAIRS
]
# Reversed, because the order of declarations must not matter.
OLDER = OperationTable(OPERATIONS[::-1], newer=False)


@pytest.mark.parametrize(
    ("asked", "found", "captures"),
    [
        ("GET /find?id=7", 0, {"id": "7"}),
        ("HEAD /find?id=7", 0, {"id": "7"}),
        ("GET /find?x=7", 1, {}),
        ("GET /find?q=a&in=b", 2, {"q": "a", "in": "b"}),
        ("HEAD /find?q=a&in=b&x", 1, {}),
        ("GET /booking/7", 3, {"number": "7"}),
        ("GET /%62ooking/%2D%5f%7E%41%7a%30", 3, {"number": "-_~Az0"}),
        ("GET /booking/%2E%40%2F", 3, {"number": "%2E%40%2F"}),
        ("PUT /booking/7", 4, {"id": "7"}),
        ("DELETE /a/b", 5, {"rest": "a/b"}),
        ("POST /find", 5, {"rest": "find"}),
        ("GET /stats", 6, {}),
        ("GET /lone?id=C-7", 8, {"id": "7"}),
        ("GET /lone?id=7", 7, {"id": "7"}),
        ("GET /lone?x=1", 5, {"rest": "lone"}),
        ("GET /a//b", None, {}),
        ("PUT /booking/7/", 4, {"id": "7", END: "/"}),
        ("GET /find/?id=7", 0, {"id": "7", END: "/"}),
        ("DELETE /a/b/", 5, {"rest": "a/b", END: "/"}),
        ("DELETE /", 5, {"rest": ""}),
        ("GET /a//", None, {}),
    ],
)
def test_the_table_finds_the_operation_of_a_request_in_the_older_version(
    asked: str, found: int | None, captures: dict[str, str]
) -> None:
    check(OLDER, asked, found, captures)


def check(table: OperationTable, asked: str, index: int | None, captures: dict[str, str]) -> None:
    method, _, target = asked.partition(" ")
    path, _, query = target.partition("?")
    found = table.find(method, path, parse_query(query))
    if index is None:
        assert found is None
    else:
        assert found is not None
        assert found.operation is OPERATIONS[index]
        assert found.captures == captures


@pytest.mark.parametrize(
    ("prefix", "above"),
    [
        ("/api", "/v1"),
        ("/api/2", "/v1"),
        ("/api/2/session", "/v1/login"),
        ("/api/2/guests", "/v1/people"),
        ("/api/2/sess", None),
        ("/all", ""),
        ("/other", None),
    ],
)
def test_above_returns_the_common_path_of_operations_below_a_prefix(
    prefix: str, above: str | None
) -> None:
    pairs = [
        ("POST /api/{version}/session", "POST /v{version}/login"),
        ("/api/{version}/guests/{id}", "/v{version}/people/{id}"),
        ("GET /api/{version}/guests", "GET /v{version}/people"),
        ("/all/one", "/one"),
        ("/all/{rest*}", "/{rest*}"),
    ]
    operations = [
        MappedOperation(parse_operation(newer), parse_operation(older)) for newer, older in pairs
    ]
    table = OperationTable(operations, newer=True)
    assert table.above(prefix, Version(2, "2"), Version(1, "1")) == above


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/orders/search", "POST"),  # GET matches only as /orders/{id}
        ("/orders/7/cancel", "PUT"),
        ("/orders/7", "GET"),
        ("/orders", "GET"),
        ("/find", "GET"),
        ("/other", "GET"),
    ],
)
def test_a_link_has_the_method_of_the_operation_with_the_most_literal_path(
    path: str, method: str
) -> None:
    texts = [
        *("POST /orders/search", "/orders/{id}", "PUT /orders/{id}/cancel"),
        *("GET /orders/{id}/{part}", "GET /orders", "POST /orders", "POST /find", "GET /find"),
        "POST /new?a={a}",
    ]
    operations = [MappedOperation(parse_operation(text), parse_operation(text)) for text in texts]
    for side in (True, False):
        table = OperationTable(operations, newer=side)
        assert table.method_of_link(lambda: path) == method


def test_a_link_has_the_method_get_by_default() -> None:
    only = parse_operation("POST /a")
    table = OperationTable([MappedOperation(only, only)], newer=True)
    assert table.method_of_link(str) == "GET"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "pay",
            "'pay' is not an operation; write a method and a path, as in GET /users/{id}, or a",
        ),
        ("get /pay", "'get /pay' is not an operation; "),
        ("GET /a /b", "'GET /a /b' is not an operation; "),
        ("GET /pay?id", "'id' is not a parameter; write name={capture} or name=value"),
        ("GET /pay?=1", "'=1' is not a parameter; "),
        ("GET /{id}?id={id}", "'{id}' occurs twice; every capture needs a different name"),
        ("GET /a?b={c", "'b={c' has no capture; write one, as in name={id} or name=C-{id}"),
        ("GET /a?b={c}{d}", "'b={c}{d}' has no capture; "),
        ("GET /{a}{b}", "segment '{a}{b}' has several captures"),
    ],
)
def test_an_invalid_operation_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_operation(text)
