"""JSON bodies: what Python functions are given of them, and what they may return."""

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
    """Return a body after one upgrade."""
    link = VersionLink(Version(1), Version(2), (change,))
    return json_body.convert(body, BodyConversion((link,), Direction.UP))


def given(body: bytes) -> list[Any]:
    """Return what a function is given of a body, which has to pass as it is."""
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
def test_numbers_reach_functions_exact(text: str, value: object) -> None:
    (found,) = given(f'{{"a":{text}}}'.encode())
    assert (type(found["a"]), str(found["a"])) == (type(value), str(value))


@pytest.mark.parametrize(
    "text",
    ["1e999999999", "1e99999999999999999999", "-1E-999999999", "9" * 401, "1e401", "-0,1e401"],
)
def test_numbers_reach_functions_bounded(text: str) -> None:
    """A function that calls `int` would hang for minutes."""
    began = time.process_time()
    with pytest.raises(ConversionError, match="too large for a Python function"):
        given(f"[{text}]".encode())
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", ["# Hello", '{"a":', "-0]"])
def test_a_body_for_a_function_that_is_not_json_is_refused_as_such(text: str) -> None:
    with pytest.raises(ConversionError, match="not JSON: "):
        given(text.encode())


def test_what_a_function_returns_is_bounded() -> None:
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
def test_a_whole_body_may_be_any_json(
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
def test_the_next_version_reads_a_number_that_a_change_has_made(
    first: Change, second: Change, body: bytes
) -> None:
    """As it reads one that was sent: two conversions at once are the same as one by one."""
    versions = Version(1), Version(2), Version(3)
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


def test_a_number_beyond_all_exponents_is_another_one() -> None:
    body = b'{"k":1e99999999999999999999}'
    assert converted(body, inverse(omit_null((), FIELD, 15))) == body
    with pytest.raises(ConversionError, match="a number that is not in the map"):
        converted(body, inverse(MAPPED))


@pytest.mark.parametrize("number", ["1", "0", "-0", "1.50", "1e999"])
def test_blanks_around_a_number_are_no_part_of_it(number: str) -> None:
    change = whole_body(retype((), BODY, Type.NUMBER, Type.TEXT))
    link = VersionLink(Version(1), Version(2), (change,))
    body = f" {number}\r\n".encode()
    assert (
        json_body.convert(body, BodyConversion((link,), Direction.DOWN))
        == b'"%b"' % number.encode()
    )
    kept = whole_body(envelope((), BODY, ("data",)))
    link = VersionLink(Version(1), Version(2), (kept,))
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
    """Return the route of a version of the shop."""
    (endpoint,) = load(RULES.encode(), "gateway.yaml", {}, Path()).router
    return endpoint.routes[Version(version)]


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"items": [{}, {"cost": 7}]}, "/items/1/cost: expected a string, found a number"),
        ({"kinds": {"a/b": {"cost": "x"}}}, "/kinds/a~1b/cost: expected an amount"),
        ({"items": [None, {"price": {"unit": "X"}}]}, "/items/1/price/unit: a string that is not"),
        ([{"items": [{"cost": "1", "price": 2}]}], "/0/items/0/price: expected an object"),
        (
            {"items": [{"cost": "1", "price": {"amount": 2}}]},
            "/items/0/price/amount: is there already, and /items/0/cost is to become it",
        ),
    ],
)
@pytest.mark.parametrize("blanks", [0, large_json.LARGE])
def test_a_refusal_names_the_place_of_the_client(document: object, error: str, blanks: int) -> None:
    request = routed(1).request
    assert request is not None
    conversion = request.for_request("POST")
    assert conversion is not None
    text = json.dumps(document)
    body = f"{text[0]}{' ' * blanks}{text[1:]}".encode()
    with pytest.raises(ConversionError) as caught:
        json_body.convert(body, conversion)
    assert str(caught.value).startswith(error)
