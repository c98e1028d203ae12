"""Forms are converted like JSON objects whose values are strings."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from gateway.conversion.chain import BodyConversion
from gateway.conversion.changes.rename import rename
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.field_path import parse_path
from gateway.conversion.formats.form_body import convert_form, retyped
from gateway.conversion.version_step import Direction, FormTypes, VersionLink
from gateway.rules.load import load
from gateway.versions.version import Version
from tests.gateway.conversion.documents import KEEP, keeping
from tests.gateway.proxy.body.rules import conversion

ADDED = "channel=web&tries=3"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("", ""),
        ("title=Ada", "name=Ada"),
        ("title=Ada+K%C3%B6nig%26Co", "name=Ada+K%C3%B6nig%26Co"),
        ("other=&x=1&x=2", "other=&x=1&x=2"),
        ("size=1.50", "size=1.50"),
        ("cents=12.50", "cents=1250"),
        ("state=1", "state=OPEN"),
        ("kind=false", "kind=B"),
        ("archived=true", "active=false"),
        ("full=Ada+King", "first=Ada&last=King"),
    ],
)
def test_a_form_is_upgraded_by_the_changes_of_json_bodies(older: str, newer: str) -> None:
    expected = f"{newer}&{ADDED}" if newer else ADDED
    assert convert_form(older.encode(), conversion()).decode() == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"state=7", "/state: a string other than "),
        (b"archived=maybe", "/archived: expected a boolean, found a string"),
        (b"cents=a", "/cents: "),
        (b"email=a", "/email: becomes an object, which a form cannot hold"),
    ],
)
def test_values_that_a_form_cannot_hold_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(ConversionError) as error:
        convert_form(body, conversion())
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (b"a&title&b=", b"a&name&b="),
        (b"&&x=%zz&&title=a%20b*c&&y", b"&&x=%zz&&name=a%20b*c&&y"),
        (b"%74itle=%ff&\xe9=1", b"name=%ff&\xe9=1"),
        (b"x=1&title=T&x=3", b"x=1&name=T&x=3"),
        (b"title=1&title=2&x", b"name=1&name=2&x"),
        (b"title=1&cents=2&x", b"name=1&cents=200&x"),
        (b"cents=1&cents=2&x=", None),
        (b"state=%31&kind=true&x=a.b~c", b"state=OPEN&kind=A&x=a.b~c"),
        (b"a=1&full=Ada%20King", b"a=1&first=Ada&last=King"),
    ],
)
def test_fields_that_no_change_names_keep_their_bytes(older: bytes, newer: bytes | None) -> None:
    if newer is None:
        with pytest.raises(ConversionError):
            convert_form(older, conversion())
    else:
        assert convert_form(older, conversion()) == newer + b"&" + ADDED.encode()


@pytest.mark.parametrize(
    "body",
    [
        *(b"channel=%77eb&tries=3&x=%zz", b'{"title":1}', b' [{"a":"=&title=1"}]\n'),
        *(b'"a=b&title=1"', b"plain text", b"a&b", b'<a b="c"/>', b"one line, a=b\nand another"),
    ],
)
@pytest.mark.parametrize("becomes_json", [False, True])
def test_a_body_that_is_not_a_form_or_is_unchanged_is_returned_as_the_same_object(
    body: bytes, becomes_json: bool
) -> None:
    if not (becomes_json and body.startswith(b"channel")):
        assert convert_form(body, of(2) if becomes_json else conversion()) is body


def test_a_form_that_is_not_utf_8_cannot_become_json() -> None:
    for body in (b"street=%ff&n=1", b"%ff=1", b"tags=1&tags=\xff"):
        with pytest.raises(ConversionError, match="not a form in UTF-8"):
            convert_form(body, of(2))


@pytest.mark.parametrize("shift", range(4))
def test_a_long_form_value_is_decoded_and_encoded_in_steps(shift: int) -> None:
    """A single call would need 85 times the memory of the value."""
    form = b"title=" + b"a" * shift + b"%C3%B6%2" * 60_000 + b"%"
    tracemalloc.start()
    converted = convert_form(form, conversion())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert parse_qsl(converted.decode())[0] == ("name", parse_qsl(form.decode())[0][1])
    assert peak < 12 * len(form)


JSON_RULES = """
services: { a: { targets: ["http://localhost:1"] } }
apis:
  a:
    versions: { "3": { service: a }, "2": { via: "3" }, "1": { via: "3" } }
    endpoints: [ { path: "/v{version}/a", version: { in: path } } ]
    conversions:
      - between: ["1", "2"]
        changes: [ rename: { field: street, to: road } ]
      - { between: ["1", "2"], methods: [PUT], changes: [ envelope: { into: data } ] }
      - between: ["2", "3"]
        forms: { version: older, numbers: [n, cents], lists: [tags] }
        changes: [ rename: { field: address.street, to: street } ]
      - between: ["2", "3"]
        forms: { version: older, booleans: [on] }
        changes: [ multiply: { field: cents, by: 0.01 } ]
      - between: ["2", "3"]
        forms: { version: newer, numbers: [street] }
        methods: [DELETE]
"""


def of(version: int, method: str = "POST") -> BodyConversion:
    (endpoint,) = load(JSON_RULES.encode(), "gateway.yaml", {}, Path()).router
    request = endpoint.routes[Version(version, str(version))].request
    assert request is not None
    found = request.for_request(method)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("version", "form", "body"),
    [
        (2, "street=A+1&n=7", {"n": 7, "address": {"street": "A 1"}}),
        (2, "tags=a&on=1&other=5", {"tags": ["a"], "on": True, "other": "5"}),
        (1, "road=A&n=7", {"n": 7, "address": {"street": "A"}}),
        (2, "cents=2.50", {"cents": 250}),
        (2, "", {}),
    ],
)
def test_a_form_becomes_json_with_the_declared_types(version: int, form: str, body: object) -> None:
    conversion = of(version)
    assert json.loads(convert_form(form.encode(), conversion)) == body
    fields = [(b"content-type", b"application/x-www-form-urlencoded"), (b"A", b"b")]
    assert retyped(fields, conversion) == [(b"A", b"b"), (b"Content-Type", b"application/json")]


def test_unfit_keep_preserves_invalid_values_of_a_form_that_becomes_json() -> None:
    conversion = of(2)
    form = b"n=x&cents=half&tags=a"
    with pytest.raises(ConversionError, match=r"^/n: expected a number, found another string$"):
        convert_form(form, conversion)
    links = tuple(
        replace(link, unfit=KEEP, changes=keeping(*link.changes)) for link in conversion.links
    )
    answer = BodyConversion(links, conversion.direction)
    with pytest.raises(ConversionError, match=r"^/n: "):
        convert_form(form, answer)
    kept = convert_form(form, BodyConversion(links, conversion.direction, True))
    assert json.loads(kept) == {"n": "x", "cents": "half", "tags": ["a"]}


def test_a_form_stays_a_form_in_the_direction_without_a_declared_conversion_to_json() -> None:
    older = replace(of(2, "DELETE").links[-1], changes=())
    conversion = BodyConversion((older,), Direction.UP)
    assert convert_form(b"street=A", conversion) == b"street=A"
    assert retyped([(b"a", b"b")], conversion) == [(b"a", b"b")]
    down = BodyConversion((older,), Direction.DOWN)
    assert json.loads(convert_form(b"street=7", down)) == {"street": 7}


def test_a_document_that_is_not_an_object_cannot_become_json_from_a_form() -> None:
    with pytest.raises(ConversionError, match="a string, which a form cannot hold"):
        convert_form(b"data=b", of(1, "PUT"))


TYPES = FormTypes(False, ("size", "lines"), ("on", "flags"), ("lines", "tags"))


@pytest.mark.parametrize(
    ("name", "given"), [("size", ""), ("size", "1,5"), ("size", "9" * 401), ("on", "yes")]
)
def test_a_form_value_without_the_declared_type_is_refused_or_kept(name: str, given: str) -> None:
    with pytest.raises(ConversionError, match=f"^/{name}: expected a "):
        TYPES.typed({name: given})
    assert TYPES.typed({name: given, "lines": "x"}, keeps=True) == {name: given, "lines": ["x"]}


def test_a_nested_field_of_a_form_is_named_as_in_a_query() -> None:
    path = parse_path("promotion[coupon]")
    link = VersionLink(
        Version(1, "1"), Version(2, "2"), (rename(path.scopes, path.keys, ("coupon",)),)
    )
    up = BodyConversion((link,), Direction.UP, of_request=True)
    down = BodyConversion((link,), Direction.DOWN, of_request=True)
    older, newer = b"coupon=a&metadata[x]=%5B", b"promotion%5Bcoupon%5D=a&metadata[x]=%5B"
    assert convert_form(older, up) == newer
    assert convert_form(newer, down) == older
    assert convert_form(b"promotion[coupon]=a", down) == b"coupon=a"


def test_an_object_in_a_form_is_refused_with_the_name_of_its_nested_field() -> None:
    link = VersionLink(
        Version(1, "1"), Version(2, "2"), (rename((), ("promotion", "coupon"), ("coupon",)),)
    )
    with pytest.raises(ConversionError, match=r"name its nested field as 'promotion\[coupon\]'"):
        convert_form(b"coupon=a", BodyConversion((link,), Direction.UP, of_request=True))
