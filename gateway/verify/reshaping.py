"""Reshapings: changes of more than one field, of which one may be missing between two versions.

Candidates are made of the names that only one version has. Each is tried on the shape of the body:
one that leaves fewer differences than there were, and none at the field in question, is a hint; and
the fewer are left, the better.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, permutations
from typing import NamedTuple

from gateway.config.changes.change_list import ChangeConfig
from gateway.config.text.source import read
from gateway.core.conversion.changes.values.word_case import CaseRewriting, WordCase
from gateway.core.conversion.field_path import parse_path
from gateway.verify.checks.changed_shape import changed_shape
from gateway.verify.openapi.body_shape import BodyShape
from gateway.verify.openapi.field_shape import FieldShape, Presence
from gateway.verify.openapi.json_schema import Schema

# Of schemas that hold themselves, so many of the outermost fields are compared.
_MANY = 300
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)
_LAST = re.compile(r"(?:\\.|[^.\\])+\Z", re.DOTALL)


def reshapings(given: Schema, wanted: Schema, field: str, *, down: bool) -> Iterator[str]:
    """Yield changes, as gateway.yaml would declare them, that make a sender's body fit better.

    Args:
        given: the schema of the sender's body.
        wanted: that of the recipient's.
        field: which differs, as changes name it; empty for the whole body.
        down: whether the recipient is of the older version.
    """
    before = _differences(BodyShape.of(given), BodyShape.of(wanted))
    if field not in before:
        return
    newer, older = (given, wanted) if down else (wanted, given)
    sides = _Side.of(newer, older), _Side.of(older, newer)
    fitting: dict[tuple[int, str], list[str]] = {}
    for change in dict.fromkeys(_candidates(*sides, field)):
        entry = ChangeConfig.model_validate_json(json.dumps(read(change.encode(), "hint", {}).data))
        ((kind, section),) = entry.named().items()
        upgrade = section.upgrade()
        shape = changed_shape(BodyShape.of(given), upgrade, upwards=not down)
        after = _differences(shape, BodyShape.of(wanted))
        moved = upgrade.moves.values() if down else upgrade.moves
        if len(after) < len(before) and after.isdisjoint((field, *moved)):
            fitting.setdefault((len(after), kind), []).append(change)
    # Of several that fit equally well, none is known to be meant.
    yield from (some[0] for _, some in sorted(fitting.items()) if len(some) == 1)


def quoted(name: str) -> str:
    """Return a name as YAML in braces takes it, in quotes where it holds other signs."""
    return name if _PLAIN.match(name) else json.dumps(name, ensure_ascii=False)


class _Side(NamedTuple):
    """The fields of one version.

    Attributes:
        names: all of them, as changes name them.
        own: those that the other version lacks.
        beside: the names in each object, which is named as a field, by that.
    """

    names: Sequence[str]
    own: Sequence[str]
    beside: dict[str, list[str]]

    @classmethod
    def of(cls, schema: Schema, other: Schema) -> "_Side":
        names, others = (_names(BodyShape.of(one)) for one in (schema, other))
        beside: dict[str, list[str]] = {}
        for name in names:
            last = _last(name)
            beside.setdefault(name[: -len(last)].removesuffix("."), []).append(last)
        return cls(names, [name for name in names if name not in others], beside)

    def inside(self, name: str) -> list[str]:
        """Return the names in an object."""
        return self.beside.get(name, [])


def _names(shape: BodyShape) -> list[str]:
    return list(islice(shape.names(), _MANY))


def _last(name: str) -> str:
    found = _LAST.search(name)
    assert found is not None
    return found[0]


def _outer(name: str) -> str:
    return name[: -len(_last(name))]


def _candidates(newer: _Side, older: _Side, differing: str) -> Iterator[str]:
    yield from _recased(newer, older)
    yield from (f"extract: {{ key: {quoted(name)} }}" for name in newer.own if not _outer(name))
    yield from (f"envelope: {{ into: {quoted(name)} }}" for name in older.own if not _outer(name))
    if differing:
        same = f"field: {quoted(differing)}"
        for key in newer.inside(differing):
            yield f"extract: {{ {same}, key: {quoted(key)} }}"
        for key in older.inside(differing):
            yield f"envelope: {{ {same}, into: {quoted(key)} }}"
    yield from (f"flatten: {{ {nested} }}" for nested in _nested(newer, older))
    yield from (f"nest: {{ {nested} }}" for nested in _nested(older, newer))
    for single, each, change in ((newer, older, "spread"), (older, newer, "collect")):
        for beside, inner in _spread(single, each):
            ways = (beside, inner) if single is newer else (inner, beside)
            field, to = map(quoted, ways)
            if beside in each.names:
                yield f"{change}: {{ field: {field}, into: {to} }}"
            elif _outer(inner).endswith("[]."):
                yield f"{change}: {{ field: {field}, into: {to}, keep: false }}"
            else:
                yield f"rename: {{ field: {field}, to: {to} }}"


def _recased(newer: _Side, older: _Side) -> Iterator[str]:
    """Yield the changes of all keys that make those of one version of those of the other."""
    others = {_last(name) for name in older.own}
    for one, other in permutations(WordCase, 2):
        with suppress(ValueError):
            write = CaseRewriting(one, other)
            made = {name: write(_last(name)) for name in newer.own}
            found = {_last(name) for name, key in made.items() if key in others}
            stay = {name for name, key in made.items() if key not in others}
            holders = dict.fromkeys(_last(_outer(name)[:-1]) for name in stay if _outer(name))
            but = f", but: [{', '.join(map(quoted, holders))}]" if holders else ""
            if len(found) > 1:
                yield f"key_case: {{ newer: {one.value}, older: {other.value}{but} }}"


def _nested(deep: _Side, flat: _Side) -> Iterator[str]:
    """Yield the objects of one version whose members the other one has beside them."""
    for name in deep.own:
        members, outer = deep.inside(name), _outer(name)
        there = flat.inside(outer.removesuffix("."))
        for prefix in dict.fromkeys(
            one.removesuffix(members[0]) for one in there if members and one.endswith(members[0])
        ):
            mine = {f"{prefix}{member}" for member in members}
            others = [one for one in there if one.startswith(prefix) and one not in mine]
            but = f", but: [{', '.join(map(quoted, others))}]" if others else ""
            yield f"field: {quoted(name)}, prefix: {quoted(prefix)}{but}"


def _spread(single: _Side, each: _Side) -> Iterator[tuple[str, str]]:
    """Yield the fields beside a list or object of which the other version has one inside it."""
    for inner in each.own:
        key = _last(inner)
        holder = _outer(inner).removesuffix(".").removesuffix("[]")
        beside = f"{_outer(holder)}{key}" if holder else ""
        if beside in single.names:
            yield beside, inner


def _differences(one: BodyShape, other: BodyShape) -> set[str]:
    """Return the fields that one of two shapes lacks, or of which they have different types."""
    if _differ(one.body, other.body):
        return {"", *_names(one), *_names(other)}
    found: set[str] = set()
    for shape, rival in ((one, other), (other, one)):
        for name in _names(shape):
            path = parse_path(name)
            if rival.look_up(path) is not Presence.DECLARED or (
                _differ(shape.find(path), rival.find(path))
            ):
                found.add(name)
    return found


def _differ(one: FieldShape, other: FieldShape) -> bool:
    types, others = (
        {"number" if name == "integer" else name for name in side.types} - {"null"}
        for side in (one, other)
    )
    return bool(types and others) and types.isdisjoint(others)
