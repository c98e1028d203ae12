"""Warnings about changes that can refuse a whole response, and mistakes of `unfit: omit`."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.mistakes import ConfigError
from gateway.cli import check
from gateway.conversion.conversion_error import ConversionError
from gateway.rules.checks.conversions import check_conversions
from gateway.rules.load import load_file
from gateway.verify.openapi.body_fields import BodyFields
from tests.gateway.conversion.changes.test_laws import BODIES, FEW, change_of
from tests.gateway.conversion.documents import down, up

RULES = """\
services: {{ v2: {{ targets: ["http://127.0.0.1:9"] }} }}
apis:
  orders:
    endpoints: [ {{ path: "/v{{version}}/orders", version: {{ in: path }}, methods: [GET] }} ]
    versions: {versions}
    groups: {{ item: [ {{ {group} }} ] }}
    conversions:
      - between: ["1", "2"]
        {conversion}
"""
STATE = "map: { field: state, values: { OPEN: open, DONE: closed } }"
TIME = "time: { field: created, newer: rfc3339, older: unix }"
SOMETIMES = "{ invert: { field: n }, when: { field: k, is: 1 } }"
REMEDY = "; set unfit to keep, omit or refuse such values"
OF_ORDERS = "can refuse the whole response of GET /v{version}/orders: "


def document(properties: Any, required: list[str], *, in_list: bool = False) -> str:
    schema: Any = {"type": "object", "properties": properties, "required": required}
    if in_list:
        schema = {"type": "array", "items": schema}
    content = {"application/json": {"schema": schema}}
    response = {"responses": {"200": {"description": "ok", "content": content}}}
    info = {"title": "orders", "version": "2"}
    return json.dumps({"openapi": "3.1.0", "info": info, "paths": {"/orders": {"get": response}}})


def rules(
    folder: Path,
    conversion: str,
    newer: str | None = None,
    older: str | None = None,
    group: str = STATE,
) -> Path:
    versions = []
    for label, content, service in (("1", older, 'via: "2"'), ("2", newer, "service: v2")):
        (folder / f"{label}.json").write_text(content or "")
        schema = "" if content is None else f", schema: {label}.json"
        versions.append(f'"{label}": {{ {service}{schema} }}')
    path = folder / "gateway.yaml"
    written = "{ " + ", ".join(versions) + " }"
    path.write_text(RULES.format(versions=written, conversion=conversion, group=group))
    return path


def warned(folder: Path, conversion: str, newer: str | None = None) -> list[str]:
    path = rules(folder, conversion, newer)
    issues = check_conversions(path, {}, load_file(path, {}))
    found = [issue.text.removeprefix("warning: ") for issue in issues if "can refuse" in issue.text]
    return [text.replace(OF_ORDERS, "- ").removesuffix(REMEDY) for text in found]


@pytest.mark.parametrize(
    ("conversion", "expected"),
    [
        (f"changes: [ {STATE} ]", ["map of 'state' - a value may be none of OPEN, DONE"]),
        ("changes: [ rename: { field: a, to: b } ]", []),
        ("changes: [ map: { field: s, values: { A: b }, unknown: keep } ]", []),
        ("changes: [ map: { field: s, values: { A: b }, default: { older: c } } ]", []),
        (
            f"changes: [ pick: {{ field: p, to: q }}, {SOMETIMES} ]",
            ["pick of 'p' - expected an array", "invert of 'n' - expected a boolean"],
        ),
        (
            f"changes: [ {TIME}, {{ {TIME.replace('created', 'paid')} }} ]",
            ["time of 'created', 'paid' - expected a time written as 2026-12-31T18:00:00Z"],
        ),
        ("changes: [ split: { field: n, into: [a, b] } ]", ["split of 'n' - expected a string"]),
        (
            "changes: [ use: { group: item, at: ['lines[]'] } ]",
            ["map of 'state' - a value may be none of OPEN, DONE"],
        ),
        (
            'headers: [ map: { field: X-Mode, values: { fast: "1" } } ]',
            ["map of the header 'X-Mode' - a value other than fast"],
        ),
        ('query: [ map: { field: mode, values: { fast: "1" } } ]', []),
        (f"on: requests\n        changes: [ {STATE} ]", []),
        (f"changes: [ {{ {STATE}, unfit: refuse }} ]", []),
        (f"changes: [ {{ {STATE}, unfit: {{ responses: keep }} }} ]", []),
        (f"unfit: omit\n        changes: [ {STATE} ]", []),
        ("changes: [ { use: { group: item, at: ['lines[]'] }, unfit: keep } ]", []),
        (f"allow_loss: none\n        changes: [ {STATE} ]", ["map of 'state' - a value may be"]),
    ],
)
def test_check_names_each_change_that_can_refuse_responses_unless_unfit_is_set(
    tmp_path: Path, conversion: str, expected: list[str]
) -> None:
    conversion = conversion.replace("{{", "{").replace("}}", "}")
    found = warned(tmp_path, conversion.replace(f"[ {TIME}", f"[ {{ {TIME} }}"))
    assert len(found) == len(expected)
    for text, start in zip(found, expected, strict=True):
        assert text.startswith(start)


@pytest.mark.parametrize(
    ("change", "schema", "expected"),
    [
        (STATE, {"type": "string", "enum": ["OPEN", "DONE"]}, ""),
        (STATE, {"type": ["string", "null"], "enum": ["OPEN", "DONE", None]}, ""),
        (STATE, {"enum": ["OPEN", "ON_HOLD", "LOST"]}, "a value may be ON_HOLD, LOST"),
        (STATE, {"type": "string"}, "a value may be none of OPEN, DONE"),
        (TIME, {"type": "string", "format": "date-time"}, ""),
        (TIME, {"type": "string", "format": "date"}, "expected a time written as"),
        ("type: { field: created, newer: number, older: text }", {"type": "integer"}, ""),
        ("type: { field: created, newer: text, older: number }", {"type": "string"}, "not every"),
        ("round: { field: created, digits: 1 }", {"type": "number"}, ""),
        ("round: { field: created, digits: 1 }", {"type": "string"}, "not every string is"),
        ("split: { field: created, into: [a, b] }", {"type": "string"}, ""),
        ("index: { field: created, key: id }", {"type": "array"}, "an element may lack its key"),
        ("pick: { field: created, to: first }", {"type": "array"}, ""),
    ],
)
def test_a_document_of_the_service_excludes_values_or_names_them(
    tmp_path: Path, change: str, schema: Any, expected: str
) -> None:
    field = "state" if change is STATE else "created"
    documented = document({field: schema}, [])
    found = [text.partition(" - ")[2] for text in warned(tmp_path, f"changes: [ {change} ]")]
    assert found  # without a document, each of them can refuse responses
    texts = warned(tmp_path, f"changes: [ {change} ]", documented)
    texts = [text.partition("GET /orders: ")[2] for text in texts]
    assert len(texts) == bool(expected)
    assert all(text.startswith(expected) for text in texts)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("door", []), ("order", ["map of 'state' can refuse the whole response of GET /orders"])],
)
def test_the_condition_of_a_use_excludes_objects_that_its_group_does_not_convert(
    tmp_path: Path, kind: str, expected: list[str]
) -> None:
    use = "use: { group: item, at: [state] }, when: { field: kind, is: order }"
    state = {"type": "object", "properties": {"state": {"enum": ["AJAR"]}}}
    documented = document({"kind": {"const": kind}, "state": state}, ["kind"])
    found = warned(tmp_path, f"changes: [ {{ {use} }} ]", documented)
    assert [text.partition(":")[0] for text in found] == expected


def test_a_conditional_change_of_a_header_field_can_refuse_responses(tmp_path: Path) -> None:
    words = "{ map: { field: X-Mode, values: { fast: '1' } }, when: { field: X, is: 1 } }"
    (found,) = warned(tmp_path, f"headers: [ {words} ]")
    assert found.startswith("map of the header 'X-Mode' - ")


def test_many_changes_with_the_same_reason_are_listed_in_few_warnings(tmp_path: Path) -> None:
    changes = ", ".join(f"{{ {TIME.replace('created', f'at{n}')} }}" for n in range(50))
    found = warned(tmp_path, f"changes: [ {changes} ]")
    assert len(found) == 3
    assert all(sum(f"'at{n}'" in text for text in found) == 1 for n in range(50))


@pytest.mark.parametrize(
    ("change", "required", "omits"),
    [
        (f"{{ {STATE}, unfit: omit }}", ["status"], "state"),
        (f"{{ {STATE}, unfit: {{ responses: omit }} }}", ["status"], "state"),
        (f"{{ {STATE}, unfit: {{ requests: omit }} }}", ["status"], ""),
        (f"{{ {STATE}, unfit: keep }}", ["status"], ""),
        (f"{{ {STATE}, unfit: omit }}", ["total"], ""),
        ("{ use: { group: item, at: [state] }, unfit: omit }", ["status"], "state"),
        ("{ use: { group: item, at: ['state[]'] }, unfit: omit }", ["status"], ""),
        ("{ map: { field: 'state[]', values: { A: b } }, unfit: omit }", ["status"], ""),
    ],
)
def test_a_field_that_the_older_version_requires_cannot_be_omitted(
    tmp_path: Path, change: str, required: list[str], omits: str
) -> None:
    older = document({"status": {}, "total": {}}, required, in_list=True)
    renamed = "rename: { field: state, to: status }"
    path = rules(tmp_path, f"changes: [ {renamed}, {change} ]", older=older)
    if not omits:
        check_conversions(path, {}, load_file(path, {}))
        return
    with pytest.raises(ConfigError) as caught:
        check_conversions(path, {}, load_file(path, {}))
    assert f"can omit '{omits}', which responses of version 1 require" in str(caught.value)


VALUES = st.sampled_from([None, True, 7, 1.25, "x", "", [], {}, [3], ["a,b", 1], {"a": 1}])


@pytest.mark.parametrize(("written", "newer", "older"), BODIES, ids=[row[0] for row in BODIES])
@FEW
@given(st.data())
def test_every_change_that_refuses_a_value_is_found_by_its_effect(
    written: str, newer: str, older: str, data: st.DataObject
) -> None:
    """Collisions of names and paths through values that are not objects are not reported."""
    change = change_of(written)
    for example, convert, upwards in ((older, up, True), (newer, down, False)):
        body = json.loads(example)
        name = data.draw(st.sampled_from([*body]))
        body[name] = data.draw(VALUES)
        misfits = BodyFields({}).apply(change, "", upwards=upwards)
        is_path = f"{name}[" in written and not isinstance(body[name], list)
        try:
            convert(change, body)
        except ConversionError as error:
            known = is_path or error.is_on_way or "already exists" in str(error)
            if not (known or misfits):
                raise


@pytest.mark.parametrize(("unfit", "fails"), [("", True), (", unfit: refuse", False)])
def test_check_strict_fails_for_a_change_that_can_refuse_responses_without_unfit(
    tmp_path: Path, unfit: str, fails: bool
) -> None:
    path = rules(tmp_path, f"changes: [ {{ {STATE}{unfit} }} ]")
    assert check.run(Namespace(strict=False, file=path, json=False)) == 0
    if not fails:
        assert check.run(Namespace(strict=True, file=path, json=False)) == 0
        return
    with pytest.raises(ConfigError, match="map of 'state' can refuse the whole response"):
        check.run(Namespace(strict=True, file=path, json=False))
