"""JSON bodies: arguments and results of Python functions, exact numbers, locations of errors."""

import json
import time
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import ELEMENT, Change, elements, inverse, whole_body
from gateway.conversion.changes.default import default
from gateway.conversion.changes.envelope import envelope
from gateway.conversion.changes.map import map_words
from gateway.conversion.changes.omit_null import omit_null
from gateway.conversion.changes.python import call_python
from gateway.conversion.changes.type import retype
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import Number
from gateway.conversion.formats import json_body, large_json
from gateway.conversion.scalars import Type
from gateway.conversion.steps import BODY
from gateway.conversion.version_step import Direction, VersionLink
from gateway.routing.snapshot import Route
from gateway.rules.load import load
from gateway.versions.version import Version

TYPES = Type.TEXT, Type.NUMBER


def converted(body: bytes, change: Change) -> bytes:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (change,))
    return json_body.convert(body, BodyConversion((link,), Direction.UP))


def given(body: bytes) -> list[Any]:
    """Return the arguments of a function for a body, and check that the body is unchanged."""
    seen: list[Any] = []

    def look(value: object) -> object:
        seen.append(value)
        return value

    assert converted(body, whole_body(call_python((), BODY, look, look))) == body
    return seen


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("18446744073709551615", 2**64 - 1),
        ("1.50", Decimal("1.50")),
        ("0.1", Decimal("0.1")),
        ("-0.0", Decimal("-0.0")),
        ("-0", Decimal("-0")),
        ('"-0"', "-0"),
    ],
)
def test_python_functions_receive_exact_numbers(text: str, value: object) -> None:
    (found,) = given(f'{{"a":{text}}}'.encode())
    assert (type(found["a"]), str(found["a"])) == (type(value), str(value))


@pytest.mark.parametrize(
    "text",
    ["1e999999999", "1e99999999999999999999", "-1E-999999999", "9" * 401, "1e401", "-0,1e401"],
)
def test_numbers_too_large_for_python_functions_are_refused(text: str) -> None:
    """A function that calls `int` would hang for minutes."""
    began = time.process_time()
    with pytest.raises(ConversionError, match="too large for a Python function"):
        given(f"[{text}]".encode())
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", ["# Hello", '{"a":', "-0]"])
def test_a_malformed_body_for_a_python_function_is_refused_as_not_json(text: str) -> None:
    with pytest.raises(ConversionError, match="not JSON: "):
        given(text.encode())


def test_a_python_function_cannot_return_a_number_with_too_many_digits() -> None:
    change = call_python((), ("a",), lambda _: 10**500, lambda value: value)
    with pytest.raises(ConversionError) as caught:
        converted(b'{"a":1}', change)
    assert "more than 400 digits" in caught.value.cause


@pytest.mark.parametrize(
    ("function", "body", "after"),
    [
        (lambda value: {"rows": value}, b"[1,2]", b'{"rows":[1,2]}'),
        (lambda value: value["rows"], b'{"rows":[{"a":1.50}]}', b'[{"a":1.50}]'),
        (str, b"7", b'"7"'),
        (lambda _: None, b'{"a":1}', b"null"),
    ],
)
def test_a_python_function_may_turn_a_whole_body_into_any_json(
    function: Callable[[Any], Any], body: bytes, after: bytes
) -> None:
    assert converted(body, whole_body(call_python((), BODY, function, function))) == after


FIELD = ("k",)
MAPPED = map_words((), FIELD, {"x": Number("15"), "y": Number("-1.5")}, {Number("15"): "x"})
ADDED: list[object] = [15, -1.5, 1e300, [1.5, 2], {"a": 1.5}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (inverse(MAPPED), MAPPED),
        (retype((), FIELD, Type.NUMBER, Type.TEXT), MAPPED),
        (retype((), FIELD, Type.NUMBER, Type.TEXT), inverse(omit_null((), FIELD, 15))),
        *(
            (default((), FIELD, value), retype((), FIELD, Type.TEXT, Type.NUMBER))
            for value in ADDED[:3]
        ),
        (default((), FIELD, ADDED[3]), elements((), FIELD, 1, retype((), ELEMENT, *TYPES))),
        (default((), FIELD, ADDED[4]), retype((), ("k", "a"), *TYPES)),
        (default((), FIELD, 15), MAPPED),
    ],
)
@pytest.mark.parametrize("body", [b'{"k":"15"}', b'{"k":"x"}', b"{}"])
def test_the_next_link_converts_a_created_number_like_a_received_number(
    first: Change, second: Change, body: bytes
) -> None:
    versions = Version(1, "1"), Version(2, "2"), Version(3, "3")
    links = [
        VersionLink(*pair, (change,))
        for pair, change in zip(pairwise(versions), (first, second), strict=True)
    ]

    def made(given_body: bytes, *some: VersionLink) -> bytes | str:
        try:
            return json_body.convert(given_body, BodyConversion(some, Direction.UP))
        except ConversionError as error:
            return error.reason

    middle = made(body, links[0])
    expected = made(middle, links[1]) if isinstance(middle, bytes) else middle
    assert made(body, *links) == expected


def test_a_number_with_a_huge_exponent_differs_from_all_numbers_of_a_change() -> None:
    body = b'{"k":1e99999999999999999999}'
    assert converted(body, inverse(omit_null((), FIELD, 15))) == body
    with pytest.raises(ConversionError, match="a number other than "):
        converted(body, inverse(MAPPED))


@pytest.mark.parametrize("number", ["1", "0", "-0", "1.50", "1e999"])
def test_white_space_around_a_number_is_not_part_of_its_value(number: str) -> None:
    change = whole_body(retype((), BODY, Type.NUMBER, Type.TEXT))
    link = VersionLink(Version(1, "1"), Version(2, "2"), (change,))
    body = f" {number}\r\n".encode()
    assert (
        json_body.convert(body, BodyConversion((link,), Direction.DOWN))
        == b'"%b"' % number.encode()
    )
    kept = whole_body(envelope((), BODY, ("data",)))
    link = VersionLink(Version(1, "1"), Version(2, "2"), (kept,))
    made = json_body.convert(body, BodyConversion((link,), Direction.DOWN))
    assert made == b'{"data":%b}' % number.encode()


RULES = """
services: { a: { targets: ["http://localhost:1"] } }
apis:
  shop:
    versions: { "3": { service: a }, "2": { via: "3" }, "1": { via: "2" } }
    endpoints: [ { path: "/v{version}/a", version: { in: path } } ]
    groups:
      item:
        - rename: { field: price.amount, to: cost }
        - type: { field: price.amount, newer: integer, older: text, scale: 2 }
    conversions:
      - between: ["1", "2"]
        changes:
          - use: { group: item, at: ["items[]", "kinds.*"] }
          - rename: { field: lines, to: items }
      - between: ["2", "3"]
        changes:
          - rename: { field: "lines[].sum", to: "lines[].price" }
          - map: { field: "lines[].sum.unit", values: { EUR: E } }
          - extract: { key: data }
"""


def routed(version: int) -> Route:
    (endpoint,) = load(RULES.encode(), "gateway.yaml", {}, Path()).router
    return endpoint.routes[Version(version, str(version))]


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"items": [{}, {"cost": 7}]}, "/items/1/cost: expected a string, found a number"),
        ({"kinds": {"a/b": {"cost": "x"}}}, "/kinds/a~1b/cost: expected an amount"),
        ({"items": [None, {"price": {"unit": "X"}}]}, "/items/1/price/unit: a string other than"),
        ([{"items": [{"cost": "1", "price": 2}]}], "/0/items/0/price: expected an object"),
        (
            {"items": [{"cost": "1", "price": {"amount": 2}}]},
            "/items/0/price/amount: already exists, and /items/0/cost would become it",
        ),
    ],
)
@pytest.mark.parametrize("blanks", [0, large_json.LARGE])
def test_an_error_names_the_location_in_the_body_that_the_client_sent(
    document: object, error: str, blanks: int
) -> None:
    request = routed(1).request
    assert request is not None
    conversion = request.for_request("POST")
    assert conversion is not None
    text = json.dumps(document)
    body = f"{text[0]}{' ' * blanks}{text[1:]}".encode()
    with pytest.raises(ConversionError) as caught:
        json_body.convert(body, conversion)
    assert str(caught.value).startswith(error)
