"""Conditions of changes: where they hold, patches that cannot decide them, and their mistakes."""

import json
from typing import Any

import pytest

from gateway.base.mistakes import Mistakes
from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.registry import ChangeConfig, ParameterConfig
from gateway.conversion.changes.rename import rename
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body
from gateway.conversion.formats.form_body import convert_form
from gateway.conversion.formats.json_patch import convert_patch
from gateway.conversion.parameter_change import FIELDS, in_direction, parse_query, rewrite_query
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version

CHARGE = {"rename": {"field": "sum", "to": "total"}, "when": {"field": "kind", "is": "charge"}}
OBJECT = {
    "rename": {"field": "customer.name", "to": "customer.title"},
    "when": {"field": "customer", "type": "object"},
}


GROUPS = {"item": (rename((), ("sum",), ("total",)),)}


def compiled(declared: Any, mistakes: Mistakes | None = None) -> Change | None:
    entry = ChangeConfig.model_validate_json(json.dumps(declared))
    return entry.compile(BuildContext((mistakes or Mistakes()).below("changes", 0), GROUPS))


def upgrade(declared: Any, *, patch: bool = False) -> BodyConversion:
    change = compiled(declared)
    assert change is not None
    used = change.for_patch() if patch else change
    return BodyConversion((VersionLink(Version(1, "1"), Version(2, "2"), (used,)),), Direction.UP)


EVENT = {
    "rename": {"field": "data.object.sum", "to": "data.object.amount"},
    "when": {"field": "type", "is": ["charge.paid", "charge.failed"]},
}
KIND = {
    "default": {"field": "spec.size", "value": 1},
    "when": {"field": "kind", "is_not": "Status"},
}
PORT = {
    "rename": {"field": "port", "to": "portName"},
    "when": {"field": "port", "type": "text", "older": {"field": "portName", "type": "text"}},
}
LIST = {
    "rename": {"field": "data[].sum", "to": "data[].amount"},
    "when": {"field": "data", "type": "array"},
}
ALONE = {
    "rename": {"field": "data.sum", "to": "data.amount"},
    "when": {"field": "data", "type": "object"},
}


@pytest.mark.parametrize(
    ("declared", "newer", "older"),
    [
        (
            *([EVENT], {"type": "charge.paid", "data": {"object": {"sum": 1}}}),
            {"type": "charge.paid", "data": {"object": {"amount": 1}}},
        ),
        ([EVENT], *[{"type": "payout.paid", "data": {"object": {"sum": 1}}}] * 2),
        ([KIND], *[{"kind": "Status", "code": 404}] * 2),
        ([KIND], {"kind": "Pod", "spec": {"size": 1}}, {"kind": "Pod"}),
        ([PORT], {"port": "http"}, {"portName": "http"}),
        ([PORT], {"port": 80}, {"port": 80}),
        ([LIST, ALONE], {"data": [{"sum": 1}, {}]}, {"data": [{"amount": 1}, {}]}),
        ([LIST, ALONE], {"data": {"sum": 1}}, {"data": {"amount": 1}}),
        ([LIST, ALONE], {"data": None}, {"data": None}),
    ],
)
def test_a_condition_holds_in_both_directions(declared: list[Any], newer: Any, older: Any) -> None:
    changes = tuple(change for each in declared if (change := compiled(each)))
    link = VersionLink(Version(1, "1"), Version(2, "2"), changes)
    for direction, given, wanted in ((Direction.DOWN, newer, older), (Direction.UP, older, newer)):
        made = json_body.convert(json.dumps(given).encode(), BodyConversion((link,), direction))
        assert json.loads(made) == wanted


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (b"kind=charge&total=5", b"kind=charge&sum=5"),
        (b"kind=refund&total=5", b"kind=refund&total=5"),
        (b"total=5", b"total=5"),
    ],
)
def test_a_condition_holds_in_a_form(older: bytes, newer: bytes) -> None:
    assert convert_form(older, upgrade(CHARGE)) == newer


@pytest.mark.parametrize(
    ("declared", "older", "newer"),
    [
        (CHARGE, {"kind": "charge", "total": 5}, {"kind": "charge", "sum": 5}),
        (CHARGE, {"kind": "refund", "total": 5}, {"kind": "refund", "total": 5}),
        (CHARGE, {"state": "open"}, {"state": "open"}),
        (OBJECT, {"customer": {"title": "Ada"}}, {"customer": {"name": "Ada"}}),
        (OBJECT, {"customer": "cus_1"}, {"customer": "cus_1"}),
        (OBJECT, {"customer": None}, {"customer": None}),
    ],
)
def test_a_merge_patch_with_the_field_of_the_condition_is_converted(
    declared: Any, older: Any, newer: Any
) -> None:
    body = json.dumps(older).encode()
    assert json.loads(json_body.convert(body, upgrade(declared, patch=True))) == newer


def test_a_merge_patch_that_cannot_decide_the_condition_is_refused() -> None:
    """Otherwise `total` would reach a charge under the name of the older version."""
    with pytest.raises(ConversionError, match="expected 'kind' that is charge beside it") as caught:
        json_body.convert(b'{"total": 5}', upgrade(CHARGE, patch=True))
    assert caught.value.place == ("total",)


ITEM = {"use": {"group": "item"}, "when": {"field": "kind", "is": "charge"}}


@pytest.mark.parametrize("body", [b'{"name": "x"}', b'{"data": {"total": 5}}', b"{}"])
def test_a_merge_patch_that_the_change_would_not_alter_needs_no_condition(body: bytes) -> None:
    assert json_body.convert(body, upgrade(ITEM, patch=True)) == body


def test_a_merge_patch_of_a_group_that_cannot_decide_its_condition_is_refused() -> None:
    with pytest.raises(ConversionError, match="expected 'kind' that is charge beside it"):
        json_body.convert(b'{"total": 5}', upgrade(ITEM, patch=True))


@pytest.mark.parametrize(
    ("declared", "older", "newer"),
    [
        (OBJECT, "/customer/title", "/customer/name"),
        (OBJECT, "/customer", "/customer"),
        (CHARGE, "/state", "/state"),
    ],
)
def test_a_json_patch_is_converted_if_its_path_decides_the_condition(
    declared: Any, older: str, newer: str
) -> None:
    body = [{"op": "replace", "path": older, "value": "x"}]
    made = convert_patch(json.dumps(body).encode(), upgrade(declared, patch=True))
    assert json.loads(made) == [{"op": "replace", "path": newer, "value": "x"}]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/total", "value": 5},
        {"op": "remove", "path": "/total"},
        {"op": "copy", "from": "/total", "path": "/other"},
    ],
)
def test_a_json_patch_that_cannot_decide_the_condition_is_refused(operation: Any) -> None:
    with pytest.raises(ConversionError):
        convert_patch(json.dumps([operation]).encode(), upgrade(CHARGE, patch=True))


def test_each_element_of_an_array_decides_for_itself() -> None:
    change = {
        "use": {"group": "item", "at": ["lines[]"]},
        "when": {"field": "lines[].kind", "is": "charge"},
    }
    lines = {**CHARGE["rename"], "field": "lines[].sum", "to": "lines[].total"}
    older = {"lines": [{"kind": "charge", "total": 1}, {"kind": "refund", "total": 2}]}
    made = json_body.convert(
        json.dumps(older).encode(), upgrade({"rename": lines, "when": change["when"]}, patch=True)
    )
    assert json.loads(made) == {
        "lines": [{"kind": "charge", "sum": 1}, {"kind": "refund", "total": 2}]
    }


@pytest.mark.parametrize(
    ("change", "when", "at", "text"),
    [
        ({}, {"field": "a"}, ("when",), "needs exactly one of is, is_not and type"),
        ({}, {"field": "a", "is": 1, "type": "text"}, ("when",), "needs exactly one of"),
        (
            {},
            {"field": "x[].a", "is": 1},
            ("when", "field"),
            ("is in an array, and the change is not"),
        ),
        ({}, {"field": "a[]", "is": 1}, ("when", "field"), "ends with '[]'"),
        (
            {},
            {"field": "a", "is": 1, "older": {"field": "x[].a", "is": 1}},
            ("when", "older"),
            "belongs to other objects than the field of the newer version",
        ),
        (
            {"to_query": {"field": "a", "parameter": "a"}},
            {"field": "a", "is": 1},
            ("when",),
            "a change that moves values out of the body has no condition",
        ),
    ],
)
def test_a_condition_that_cannot_be_checked_is_a_mistake(
    change: Any, when: Any, at: tuple[str, ...], text: str
) -> None:
    mistakes = Mistakes()
    declared = change or {"rename": {"field": "b", "to": "c"}}
    assert compiled({**declared, "when": when}, mistakes) is None
    (mistake,) = mistakes.found
    assert mistake.location == ("changes", 0, *at)
    assert text in mistake.text


@pytest.mark.parametrize(
    ("value", "form", "is_converted"),
    [
        (5, "n=5", True),
        (5, "n=5.0", True),
        (5, "n=6", False),
        ("5", "n=5", True),
        (True, "n=true", True),
        (True, "n=1", False),
    ],
)
def test_a_text_of_a_form_that_contains_a_number_counts_as_a_number(
    value: object, form: str, is_converted: bool
) -> None:
    change = {"rename": {"field": "sum", "to": "total"}, "when": {"field": "n", "is": value}}
    made = convert_form(f"{form}&total=1".encode(), upgrade(change))
    assert made == (f"{form}&sum=1" if is_converted else f"{form}&total=1").encode()


def of_parameters(change: str, **when: Any) -> Any:
    declared = {change: {"field": "size", "value": "9"}, "when": when}
    made = ParameterConfig.model_validate_json(json.dumps(declared)).compile(
        BuildContext(Mistakes().below("query", 0))
    )
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("when", "query", "applies"),
    [
        ({"field": "mode", "is": "new"}, "mode=new", True),
        ({"field": "mode", "is": "new"}, "mode=%6Eew", True),
        ({"field": "mode", "is": "new"}, "mode=newer", False),
        ({"field": "mode", "is": ["a", True, 7]}, "mode=true", True),
        ({"field": "mode", "is": ["a", True, 7]}, "mode=7", True),
        ({"field": "mode", "is": "new"}, "mode=old&mode=new", True),
        ({"field": "mode", "is": "new"}, None, False),
        ({"field": "mode", "is_not": "new"}, None, True),
        ({"field": "mode", "is_not": "new"}, "mode=new", False),
        ({"field": "mode", "type": "text"}, "mode", True),
        ({"field": "mode", "type": "text"}, "other=1", False),
        ({"field": "expand[]", "is": "b"}, "expand[0]=a&expand%5B1%5D=b", True),
        ({"field": "expand[]", "is": "b"}, "expand[]=b", True),
        ({"field": "expand[0]", "is": "b"}, "expand[1]=b", False),
        ({"field": "x", "is": "1", "older": {"field": "mode", "is": "new"}}, "mode=new", True),
    ],
)
def test_a_change_of_parameters_applies_where_a_parameter_has_a_value(
    when: Any, query: str | None, applies: bool
) -> None:
    up = in_direction([of_parameters("default", **when)], upwards=True)
    made = rewrite_query(query, up)
    assert made == ("&".join(filter(None, (query, "size=9"))) if applies else query)
    if "older" not in when:
        down = in_direction([of_parameters("remove", **when)], upwards=False)
        assert rewrite_query(query, down) == made


def test_conditions_on_header_fields_ignore_the_case_of_names() -> None:
    change = of_parameters("default", field="X-Mode", **{"is": "new"})
    lines = [line._replace(key=line.name.lower()) for line in parse_query("x-MODE=new")]
    assert [line.key for line in change.up(lines, FIELDS)] == ["x-mode", "size"]


def test_the_type_of_a_parameter_can_only_be_text() -> None:
    declared = {"default": {"field": "a", "value": "9"}, "when": {"field": "b", "type": "object"}}
    mistakes = Mistakes()
    entry = ParameterConfig.model_validate_json(json.dumps(declared))
    entry.compile(BuildContext(mistakes.below("query", 0)))
    (mistake,) = mistakes.found
    assert mistake.location == ("query", 0, "when", "type")
