"""Properties of all changes, tested with the examples in the docs and with similar documents.

To include a new change in these tests, add an example to docs/change-examples.md, or to
docs/operations.md if the change is only for parameters.
"""

import json
from decimal import Decimal
from functools import cache
from inspect import isabstract
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BodySection, BuildContext
from gateway.conversion.changes.field_use import WHOLE
from gateway.conversion.changes.registry import (
    CHANGES,
    PARAMETER_CHANGES,
    ChangeConfig,
    ParameterConfig,
)
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import MISSING, PLAIN, Document, get, kind
from gateway.conversion.field_path import keys_of, parse_path
from gateway.conversion.parameter_change import FIELDS, QUERY, ParameterLine, Spelling
from gateway.conversion.scalars import NUMBER_TEXT
from gateway.rules.document import read
from gateway.rules.editor_schema import json_schema
from gateway.versions.version import Version
from tests.gateway.conversion.documents import down, up
from tests.gateway.world import LAW
from tests.test_change_examples import GROUPS, ROWS
from tests.test_operation_examples import CHANGES as QUERY_ROWS

FEW = settings(LAW, max_examples=10)
BODIES = [row for row in ROWS if row[0].removeprefix("{ ").partition(":")[0] in CHANGES]
EACH = pytest.mark.parametrize(
    ("written", "newer", "older"), BODIES, ids=[row[0] for row in BODIES]
)
ALWAYS = [row for row in BODIES if not row[0].startswith("{ ")]
UNCONDITIONAL = pytest.mark.parametrize(
    ("written", "newer", "older"), ALWAYS, ids=[row[0] for row in ALWAYS]
)
FORMS = [*CHANGES.values(), *PARAMETER_CHANGES.values()]


@cache
def entry(written: str) -> ChangeConfig:
    declared = read(written.encode(), "example", {}).data
    return ChangeConfig.model_validate_json(json.dumps(declared))


def section(written: str) -> BodySection:
    (found,) = entry(written).named().values()
    return found


@cache
def change_of(written: str) -> Change:
    change = entry(written).compile(
        BuildContext(Mistakes(), GROUPS, (Version(1, "1"), Version(2, "2")))
    )
    assert change is not None
    return change


def like(example: Any, *, in_list: bool = False) -> st.SearchStrategy[Any]:
    """Return values with the same fields and types as an example, but other lists and scalars."""
    match example:
        case dict():
            return st.fixed_dictionaries(
                {key: like(one, in_list=in_list) for key, one in example.items()}
            )
        case [_, *_] if not in_list:
            return st.lists(st.one_of([like(one, in_list=True) for one in example]), max_size=3)
        case bool():
            return st.booleans()
        case str():
            return st.sampled_from((example, "x", "7"))
        case int():
            return st.sampled_from((example, 0, 1, -3))
        case float():
            return st.sampled_from((example, 0.5, 2.5))
        case _:
            return st.just(example)


def same(value: Any) -> Any:
    """Return a document in a form for comparison, with numeric strings as numbers."""
    match value:
        case dict():
            return {key: same(one) for key, one in value.items()}
        case list():
            return [same(one) for one in value]
        case str() if NUMBER_TEXT.match(value):
            return "text", Decimal(value)
        case _:
            return value


@EACH
@FEW
@given(st.data())
def test_a_document_survives_a_round_trip_unless_the_change_declares_a_loss(
    written: str, newer: str, older: str, data: st.DataObject
) -> None:
    change = change_of(written)
    lost = {loss.newer for loss in section(written).losses()}
    for example, is_newer, there, back in ((newer, True, down, up), (older, False, up, down)):
        if (not is_newer) in lost:
            continue
        document = data.draw(like(json.loads(example)))
        try:
            converted = there(change, document)
        except ConversionError:
            continue
        assert same(back(change, converted)) == same(document)


@EACH
def test_an_absent_field_stays_absent_in_a_patch(written: str, newer: str, older: str) -> None:
    """A PATCH request contains only the fields to change (RFC 7396)."""
    patch = change_of(written).for_patch()
    assert up(patch, {}) == down(patch, {}) == {}
    assert patch.for_patch() == patch


@UNCONDITIONAL
@FEW
@given(st.data())
def test_an_upgrade_removes_and_creates_the_fields_that_its_effect_declares(
    written: str, newer: str, older: str, data: st.DataObject
) -> None:
    """`check` uses the effects to find conflicting changes."""
    use = section(written).field_use
    before = data.draw(like(json.loads(older)))
    try:
        after = up(change_of(written), before)
    except ConversionError:
        return
    assert isinstance(after, dict)
    paths = {*use.takes, *use.makes}
    if WHOLE not in paths:
        touched = {_first_key(one) for one in (*paths, *use.moves, *use.moves.values())}
        changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
        assert changed <= touched
    for where, document in ((use.reads, before), (use.leaves, after)):
        for path, kinds in where.items():
            for value in _values(document, path):
                assert kind(value) in kinds.types
                assert kinds.words is None or value in kinds.words
    for target, source in use.moves.items():
        sides = (f"{target}.", f"{source}.")
        inside = {path.rpartition(".")[2] for path in paths if path.startswith(sides)}
        moved, known = _values(after, target), _values(before, source)
        moved, known = ([_without(one, inside) for one in some] for some in (moved, known))
        if "[]" in target + source:  # there may be no elements, or more elements than moved values
            assert not known or all(value in known for value in moved)
        else:
            assert moved == known


def _without(value: Any, names: set[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: one for name, one in value.items() if name not in names}


def _first_key(path: str) -> str:
    scopes, keys, *_ = parse_path(path)
    return keys_of(scopes[0])[0] if scopes else keys[0]


def _values(document: Document, path: str) -> list[Any]:
    found: list[Any] = [document]
    if path != WHOLE:
        scopes, keys, elements, members = parse_path(path)
        ways = [(keys_of(scope), True) for scope in scopes] + [(keys, bool(elements or members))]
        for way, is_many in ways:
            inner: list[Any] = [get({**one}, way, PLAIN) for one in found if isinstance(one, dict)]
            inner = [one for one in inner if one is not None and one is not MISSING]
            if is_many:
                lists = (one.values() if isinstance(one, dict) else one for one in inner)
                inner = [value for one in lists for value in one]
            found = inner
    return [PLAIN.open(one) for one in found if one is not None]


def lines_of(document: Any, spelling: Spelling) -> list[ParameterLine] | None:
    """Return the fields of a flat object as parameters; None for a nested object."""
    lines: list[ParameterLine] = []
    for name, value in document.items():
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str | bool):
                return None
            text = one if isinstance(one, str) else str(one).lower()
            lines.append(ParameterLine(spelling.key(name), name, spelling.write(text)))
    return lines


@pytest.mark.parametrize("spelling", [QUERY, FIELDS], ids=["query", "header fields"])
def test_a_change_converts_parameters_like_the_fields_of_a_body(spelling: Spelling) -> None:
    checked = {row[0].partition(":")[0] for row in QUERY_ROWS}
    for written, newer, older in BODIES:
        declared = read(written.encode(), "example", {}).data
        sides = [
            lines_of(json.loads(one, parse_int=str, parse_float=str), spelling)
            for one in (newer, older)
        ]
        try:
            named = ParameterConfig.model_validate_json(json.dumps(declared)).named()
        except ValueError:  # there is no such change of parameters, or it has other keys
            continue
        ((keyword, form),) = named.items()
        if None in sides or "[]" in written or keyword == "python" or "when:" in written:
            continue
        if keyword == "link" and spelling is QUERY:  # exists only for header fields
            checked.add(keyword)
            continue
        mistakes = Mistakes()
        context = BuildContext(mistakes, header=spelling is FIELDS)
        change = form.parameter_change(context)
        assert change is not None
        assert not mistakes.found
        assert change.down(sides[0] or [], spelling) == sides[1], written
        assert change.up(sides[1] or [], spelling) == sides[0], written
        names = {*form.parameter_use.takes, *form.parameter_use.makes}
        assert names == {*section(written).field_use.takes, *section(written).field_use.makes}
        checked.add(keyword)
    assert checked == PARAMETER_CHANGES.keys()


def test_every_change_model_implements_all_abstract_methods() -> None:
    assert not [form for form in FORMS if isabstract(form)]


def test_every_key_of_a_change_has_a_description_in_one_line() -> None:
    definitions: Any = json_schema()["$defs"]
    for form in FORMS:
        definition = definitions[form.__name__]
        keys = definition["properties"].values()
        for described in (definition["description"], *(key["description"] for key in keys)):
            assert described.endswith(".")
            assert "\n" not in described
            assert len(described.split()) >= 6


def test_the_models_of_entries_have_one_key_for_each_change() -> None:
    for entry, changes in ((ChangeConfig, CHANGES), (ParameterConfig, PARAMETER_CHANGES)):
        keys = list(entry.model_json_schema()["properties"])
        assert keys[: len(changes)] == list(changes)
        assert set(keys[len(changes) :]) == entry.model_fields.keys()
