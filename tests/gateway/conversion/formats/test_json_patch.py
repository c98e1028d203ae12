"""JSON Patch: conversion of the paths and values in its operations."""

import json
from typing import Any

import pytest

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.changes.add_value import SpelledList, add_value
from gateway.conversion.changes.default import default
from gateway.conversion.changes.entries import list_entries
from gateway.conversion.changes.flatten import flatten
from gateway.conversion.changes.map import map_words
from gateway.conversion.changes.omit_null import omit_null
from gateway.conversion.changes.python import call_python
from gateway.conversion.changes.wrap import wrap
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats.json_patch import convert_patch
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.proxy.body.rules import conversion


def upgraded(body: str) -> str:
    return convert_patch(body.encode(), conversion("PATCH")).decode()


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("[]", "[]"),
        (
            '[{"op":"replace","path":"/title","value":"Ada"}]',
            '[{"op":"replace","path":"/name","value":"Ada"}]',
        ),
        ('[{"op":"remove","path":"/title"}]', '[{"op":"remove","path":"/name"}]'),
        (
            '[{"op":"test","path":"/size","value":"1.50"}]',
            '[{"op":"test","path":"/size","value":1.50}]',
        ),
        (
            '[{"op":"add","path":"/lines/-","value":{"amount":1}}]',
            '[{"op":"add","path":"/lines/-","value":{"price":1}}]',
        ),
        (
            '[{"op":"replace","path":"/lines/12/amount","value":2e3}]',
            '[{"op":"replace","path":"/lines/12/price","value":2e3}]',
        ),
        (
            '[{"op":"move","from":"/lines/1","path":"/lines/0"}]',
            '[{"op":"move","from":"/lines/1","path":"/lines/0"}]',
        ),
        (
            '[{"op":"add","path":"/email","value":"a@b"}]',
            '[{"op":"add","path":"/customer/mail","value":"a@b"}]',
        ),
        (
            '[{"op":"add","path":"/a~1b~0c","value":{"d":[]}}]',
            '[{"op":"add","path":"/a~1b~0c","value":{"d":[]}}]',
        ),
        (
            '[{"op":"replace","path":"/full","value":"Ada King"}]',
            (
                '[{"op":"replace","path":"/first","value":"Ada"},'
                '{"op":"replace","path":"/last","value":"King"}]'
            ),
        ),
        (
            '[{"op":"remove","path":"/full"},{"op":"remove","path":"/x"}]',
            (
                '[{"op":"remove","path":"/first"},{"op":"remove","path":"/last"},'
                '{"op":"remove","path":"/x"}]'
            ),
        ),
        (
            '[{"op":"replace","path":"","value":{"title":"Ada"}}]',
            '[{"op":"replace","path":"","value":{"name":"Ada"}}]',
        ),
        (
            '[{"op":"replace","path":"/state","value":2},{"op":"remove","path":"/x"}]',
            '[{"op":"replace","path":"/state","value":"DONE"},{"op":"remove","path":"/x"}]',
        ),
    ],
)
def test_a_json_patch_is_upgraded(older: str, newer: str) -> None:
    assert upgraded(older) == newer


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{}", "the body: not a JSON Patch (RFC 6902): "),
        ("[{}]", "/0/op: is missing"),
        ("[1]", "/0: not a JSON Patch (RFC 6902): "),
        ('[{"op":1,"path":""}]', "/0/op: expected a string"),
        ('[{"op":"swap","path":"/a"}]', "/0/op: an operation that JSON Patch does not have"),
        ('[{"op":"remove","path":"a"}]', "/0/path: not a JSON Pointer (RFC 6901)"),
        ('[{"op":"add","path":"/a"}]', "/0/value: is missing"),
        ('[{"op":"copy","from":"/title","path":"/x"}]', "/0/from: copy from a place other than"),
        (
            '[{"op":"remove","path":"%s"}]' % ("/a" * 65),
            "/0/path: a location of more than 64 names and indexes",
        ),
        (
            '[{"op":"add","path":"/a","value":%s}]' % ("[" * 20_000 + "]" * 20_000),
            "the body: not a JSON Patch",
        ),
        ('[{"op":"add","path":"/x","value":1},{"op":"test","path":"/state","value":9}]', "/1/"),
        (
            '[{"op":"remove","path":"/b"},{"op":"add","path":"/b","value":1,"value":2}]',
            "/1: an object has the key 'value' twice (RFC 8259, section 4)",
        ),
        (
            '[{"op":"remove", "path":"/b", "\\u0070ath":"/c"}]',
            "/0: an object has the key 'path' twice (RFC 8259, section 4)",
        ),
    ],
)
def test_an_invalid_or_inconvertible_json_patch_is_refused(body: str, message: str) -> None:
    with pytest.raises(ConversionError) as error:
        upgraded(body)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("path", ["/fees/0/amount", "/fees/-", "/fees/0"])
def test_a_path_into_a_list_that_becomes_a_map_is_refused(path: str) -> None:
    """The change converts only whole lists. Only the cause of the error has the details."""
    link = VersionLink(
        Version(1, "1"), Version(2, "2"), (list_entries((), ("fees",), "name", "amount"),)
    )
    patch = json.dumps([{"op": "replace", "path": path, "value": 5}]).encode()
    with pytest.raises(ConversionError) as caught:
        convert_patch(patch, BodyConversion((link,), Direction.UP))
    assert str(caught.value) == "/0/path: a location that the other version does not have"
    assert caught.value.cause


def listed(value: Any) -> Any:
    return [{"number": element} for element in value]


def test_the_value_but_not_the_path_is_passed_to_a_python_function() -> None:
    link = VersionLink(
        Version(1, "1"), Version(2, "2"), (call_python((), ("size",), str.upper, str),)
    )
    patch = '[{"op":"replace","path":"/size","value":"xl"},{"op":"remove","path":"/size"}]'
    made = convert_patch(patch.encode(), BodyConversion((link.for_patch(),), Direction.UP))
    assert made.decode() == patch.replace("xl", "XL")


A = {"amount": "A"}


@pytest.mark.parametrize("kind", ["add", "copy"])
def test_a_new_element_that_becomes_a_part_of_another_element_is_refused(kind: str) -> None:
    """A path below `-` is inside an element that does not exist (RFC 6901, section 4)."""
    change = call_python((), ("phones",), listed, listed)
    link = VersionLink(Version(1, "1"), Version(2, "2"), (change,))
    patch = {"op": kind, "from": "/phones/0", "path": "/phones/-", "value": "1"}
    body, numbers = json.dumps([patch]).encode(), BodyConversion((link,), Direction.UP)
    with pytest.raises(ConversionError) as caught:
        convert_patch(body, numbers)
    assert caught.value.pointer == "/0/path"
    assert caught.value.reason.startswith("a new element that is more than this value")


@pytest.mark.parametrize(
    ("path", "value", "pointer"), [("/phones/0", "1", "/0/path"), ("/ones/0", "1", "/0/value")]
)
def test_a_path_or_value_without_an_equivalent_in_the_other_version_is_refused(
    path: str, value: str, pointer: str
) -> None:
    changes = (
        call_python((), ("phones",), lambda _: [None, None], str),
        call_python((), ("ones",), lambda ones: [{"a": one} for one in ones if one is None], str),
    )
    link = VersionLink(Version(1, "1"), Version(2, "2"), changes)
    patch = json.dumps([{"op": "replace", "path": path, "value": value}]).encode()
    with pytest.raises(ConversionError) as caught:
        convert_patch(patch, BodyConversion((link,), Direction.UP))
    assert caught.value.pointer == pointer


LINES = (("lines",),)


@pytest.mark.parametrize(
    ("change", "direction", "given", "expected"),
    [
        (
            map_words(LINES, ("on",), {None: "none", True: "yes"}, {"none": None, "yes": True}),
            Direction.DOWN,
            {"path": "/lines/3/on", "value": True},
            {"path": "/lines/3/on", "value": "yes"},
        ),
        (
            omit_null(LINES, ("note",)),
            Direction.DOWN,
            {"path": "/lines/3/note", "value": "x"},
            {"path": "/lines/3/note", "value": "x"},
        ),
        (
            omit_null(LINES, ("note",)),
            Direction.UP,
            {"path": "/lines/3/price", "value": 5},
            {"path": "/lines/3/price", "value": 5},
        ),
        (
            default(LINES, ("note",), None),
            Direction.UP,
            {"path": "/lines/3/price", "value": 5},
            {"path": "/lines/3/price", "value": 5},
        ),
        (
            wrap(LINES, ("tags",)),
            Direction.DOWN,
            {"path": "/lines/3/tags", "value": "red"},
            {"path": "/lines/3/tags", "value": ["red"]},
        ),
        (
            flatten(LINES, ("look",), "look_", empty=None),
            Direction.UP,
            {"path": "/lines/3/price", "value": 5},
            {"path": "/lines/3/price", "value": 5},
        ),
        (
            flatten(LINES, ("look",), "look_", empty=None),
            Direction.UP,
            {"path": "/lines/3/look_size", "value": 5},
            {"path": "/lines/3/look/size", "value": 5},
        ),
    ],
)
def test_changes_of_null_values_do_not_alter_the_path_of_an_array_element(
    change: Change, direction: Direction, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    body = json.dumps([{"op": "replace", **given}]).encode()
    link = VersionLink(Version(1, "1"), Version(2, "2"), (change,)).for_patch()
    (made,) = json.loads(convert_patch(body, BodyConversion((link,), direction)))
    assert made == {"op": "replace", **expected}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"op": "add", "path": "/tags/-", "value": "y"}, None),
        ({"op": "add", "path": "/tags/3", "value": "x"}, None),
        ({"op": "test", "path": "/tags/0", "value": None}, None),
        ({"op": "remove", "path": "/tags/0"}, None),
        (
            {"op": "replace", "path": "/tags", "value": ["y"]},
            {"op": "replace", "path": "/tags", "value": ["y", "x"]},
        ),
        (
            {"op": "add", "path": "/lines/1", "value": {"tags": ["y"]}},
            {"op": "add", "path": "/lines/1", "value": {"tags": ["y", "x"]}},
        ),
        ({"op": "add", "path": "/lines/1/tags/-", "value": "y"}, None),
    ],
)
def test_an_operation_on_an_element_of_a_list_adds_no_value_of_add_value(
    older: dict[str, Any], newer: dict[str, Any] | None
) -> None:
    spelled = SpelledList("tags", "", "x")
    changes = add_value((), ("tags",), spelled), add_value(LINES, ("tags",), spelled)
    link = VersionLink(Version(1, "1"), Version(2, "2"), changes).for_patch()
    made = convert_patch(json.dumps([older]).encode(), BodyConversion((link,), Direction.UP))
    assert json.loads(made) == [newer or older]
