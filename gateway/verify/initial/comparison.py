"""Compares the schemas of two documents, and suggests the change that expresses a difference.

Schemas are compared component by component, so that a component that many messages contain is
compared once, and components may contain themselves.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from gateway.conversion.changes.map import PLACEHOLDER
from gateway.verify.initial.outline import Data, followed

# Keywords that do not restrict values.
_NOTES = frozenset({"description", "title", "example", "examples", "externalDocs", "deprecated"})
# Inline schemas are nested at most this deep; YAML aliases may contain themselves.
_DEEPEST = 30
# The minimum similarity of the names of a renamed field, from 0 to 1. Less similar names count only
# if no other fields have equal schemas.
_SIMILAR = 0.6
# The minimum similarity of the names of a field that has moved into an object.
_SAME = 0.85
# Scalars are looked for in objects that are nested at most this deep in a field.
_DEEPEST_LEAF = 2
_SCALARS = frozenset({"string", "integer", "number", "boolean"})
# Values of longer enums are not matched.
_MOST_WORDS = 30
# Field names that a change can name.
_NAMEABLE = re.compile(r"[^.\[\]*\s\\]+")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_EMPTY: Mapping[str, object] = {"array": [], "object": {}, "boolean": False, "string": ""}


class SuggestedChange(NamedTuple):
    """A change and its keys. The names of fields are relative to the object."""

    name: str
    keys: Mapping[str, object]

    @property
    def named(self) -> tuple[str, str]:
        """The change without the values that the user chooses."""
        keys = {key: one for key, one in self.keys.items() if key != "value"}
        return self.name, json.dumps(keys, sort_keys=True, default=str)

    @property
    def adds(self) -> bool:
        return self.name == "default" or "value" in self.keys

    def below(self, prefix: str) -> str:
        """Return the change as YAML, with `prefix` before the names of its fields."""
        keys = {
            key: [joined(prefix, one) for one in value]
            if isinstance(value, list) and key == "fields"
            else joined(prefix, str(value))
            if key in ("field", "to") or (key == "into" and "fields" in self.keys)
            else value
            for key, value in self.keys.items()
        }
        return f"{{ {self.name}: {flow(keys)} }}"


class Difference(NamedTuple):
    """A difference at a field. `older` and `newer` are its schemas; None if it is absent."""

    field: str
    older: object
    newer: object
    note: str = ""
    change: SuggestedChange | None = None


class Use(NamedTuple):
    """A location that refers to a component; `sure` if it allows no other schema."""

    at: str
    part: "Part"
    sure: bool = True


@dataclass(eq=False, slots=True)
class Part:
    """A message or a component: its own differences, and its references to components."""

    name: str = ""
    differences: list[Difference] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)

    @property
    def changes(self) -> dict[tuple[str, str], Difference]:
        changed = (one for one in self.differences if one.change is not None)
        return {one.change.named: one for one in changed if one.change is not None}

    def is_covered_by(self, other: "Part") -> bool:
        """Return whether the changes of another component also fit the messages of this one.

        The input of a resource has some of its fields. A change that only the other component has
        must not add its field to messages that cannot have it.
        """
        mine, theirs = self.changes, other.changes
        fields = {one.field for one in self.differences}
        return mine.keys() <= theirs.keys() and all(
            named in mine or one.field in fields or one.change is None or not one.change.adds
            for named, one in theirs.items()
        )


class _Leaf(NamedTuple):
    path: str
    kind: str
    schema: object


class Comparison:
    """The comparison of an older and a newer document."""

    def __init__(self, older: Data, newer: Data) -> None:
        self._data = older, newer
        self.components: dict[tuple[str, str], Part] = {}

    def message(self, older: object, newer: object) -> Part:
        part = Part()
        self._compare(part, "", older, newer, 0)
        return part

    def parameters(self, older: Mapping[str, Data], newer: Mapping[str, Data]) -> list[Difference]:
        """Compare query parameters or header fields, given by name."""
        part = Part()
        old, new = (
            {
                "properties": {name: one.get("schema", {}) for name, one in some.items()},
                "required": [name for name, one in some.items() if one.get("required") is True],
            }
            for some in (older, newer)
        )
        self._compare_fields(part, "", old, new, 0)
        return part.differences

    def affected(self) -> set[Part]:
        """Return the components that differ, or that contain a component that differs."""
        users: dict[Part, list[Part]] = {}
        for part in self.components.values():
            for use in part.uses:
                users.setdefault(use.part, []).append(part)
        found: set[Part] = set()
        waiting = [part for part in self.components.values() if part.differences]
        while waiting:
            part = waiting.pop()
            if part not in found:
                found.add(part)
                waiting += users.get(part, ())
        return found

    def _compare(self, part: Part, at: str, older: object, newer: object, depth: int) -> None:
        (old_name, old), (new_name, new) = self._read(0, older), self._read(1, newer)
        if depth > _DEEPEST:
            return
        if old_name and new_name and _nested(old) and _nested(new):
            part.uses.append(Use(at, self._component(old_name, new_name, old, new)))
            return
        self._compare_read(part, at, old, new, depth)

    def _component(self, old_name: str, new_name: str, old: Data, new: Data) -> Part:
        key = old_name, new_name
        if key not in self.components:
            self.components[key] = Part(new_name)
            self._compare_read(self.components[key], "", old, new, 0)
        return self.components[key]

    def _compare_read(self, part: Part, at: str, old: Data, new: Data, depth: int) -> None:
        prefix = f"{at}." if at else ""
        if "properties" in old and "properties" in new:
            self._compare_fields(part, prefix, old, new, depth)
        elif isinstance(old.get("items"), Mapping) and isinstance(new.get("items"), Mapping):
            self._compare(part, f"{at}[]", old["items"], new["items"], depth + 1)
        elif _map_of(old) and _map_of(new):
            self._compare(part, f"{prefix}*", _map_of(old), _map_of(new), depth + 1)
        elif old.get("anyOf") and new.get("anyOf"):
            self._compare_choices(part, at, old["anyOf"], new["anyOf"])
        own: Any = _facts(old)
        other: Any = _facts(new)
        if self._compare_list(part, at, old, new, depth):
            return
        if own != other:
            if own.get("type") != other.get("type"):
                own, other = (_without_notes(one) for one in (old, new))
            change = _value_change(at, old, new)
            part.differences.append(Difference(at, own, other, change=change))

    def _compare_list(self, part: Part, at: str, old: Data, new: Data, depth: int) -> bool:
        """Compare an array with an object that contains it; return whether the schemas are such."""
        for name, keys in (("extract", (old, new)), ("envelope", (new, old))):
            bare, holder = keys
            lists = _lists(holder)
            if _kind(bare) != "array" or len(lists) != 1:
                continue
            ((key, inner),) = lists.items()
            where: dict[str, object] = {"field": at} if at else {}
            where["key" if name == "extract" else "into"] = key
            own, other = (_without_notes(one) for one in (old, new))
            part.differences.append(Difference(at, own, other, change=_entry(name, **where)))
            bare_items, inner_items = bare.get("items", {}), inner.get("items", {})
            if name == "extract":
                place = f"{joined(at, key)}[]"
                self._compare(part, place, bare_items, inner_items, depth + 1)
            else:
                self._compare(part, f"{at}[]", inner_items, bare_items, depth + 1)
            return True
        return False

    def _compare_leaf(
        self, part: Part, at: str, before: str, old: object, new: object, depth: int
    ) -> bool:
        """Compare a value with the only such value of an object, if the newer version has it."""
        kind = _kind(self._read(0, old)[1])
        found = [one for one in self._leaves(new) if one.kind == kind]
        is_same = at == before
        if kind not in _SCALARS or len(found) != 1 or (is_same and "." in found[0].path):
            return False
        (leaf,) = found
        sides, place = (self._shown(0, old), self._shown(1, new)), f"{at}.{leaf.path}"
        if is_same:
            change = _entry("extract", field=at, key=leaf.path)
            part.differences.append(Difference(at, *sides, change=change))
        else:
            change = _entry("rename", field=place, to=before)
            note = f"version OLDER may call it '{before.rpartition('.')[2]}'"
            part.differences.append(Difference(place, *sides, note, change))
        self._compare(part, place, old, leaf.schema, depth + 1)
        return True

    def _leaves(self, schema: object, depth: int = 0) -> "Iterator[_Leaf]":
        """Yield the scalar fields of an object, also of the objects in it."""
        for name, inner in self._read(1, schema)[1].get("properties", {}).items():
            read = self._read(1, inner)[1]
            if not _NAMEABLE.fullmatch(name):
                continue
            if _kind(read) in _SCALARS:
                yield _Leaf(name, _kind(read), inner)
            elif depth < _DEEPEST_LEAF:
                for leaf in self._leaves(inner, depth + 1):
                    yield leaf._replace(path=f"{name}.{leaf.path}")

    def _compare_choices(
        self, part: Part, at: str, older: Sequence[object], newer: Sequence[object]
    ) -> None:
        olds, news = (
            [read for one in some for read in (self._read(side, one),) if _nested(read[1])]
            for side, some in enumerate((older, newer))
        )
        by_name = dict(olds)
        pairs = [(by_name[name], new, name, name) for name, new in news if name in by_name]
        if len(olds) == len(news) == 1:
            pairs = [(olds[0][1], news[0][1], olds[0][0], news[0][0])]
        for old, new, old_name, new_name in pairs:
            if old_name and new_name:
                component = self._component(old_name, new_name, old, new)
                part.uses.append(Use(at, component, sure=len(pairs) == 1))
            elif len(pairs) == 1:
                self._compare_read(part, at, old, new, 0)

    def _compare_fields(self, part: Part, prefix: str, old: Data, new: Data, depth: int) -> None:
        olds, news = old["properties"], new["properties"]
        lone_old = [name for name in olds if name not in news]
        lone_new = [name for name in news if name not in olds]
        renamed = dict(self._renamed({one: olds[one] for one in lone_old}, news, lone_new))
        required = [frozenset(map(str, one.get("required", ()))) for one in (old, new)]
        for name in news:
            at, before = f"{prefix}{name}", renamed.get(name, name)
            if before not in olds:
                added = self._added(at, news[name], is_required=name in required[1])
                part.differences.append(added)
                continue
            first = len(part.differences)
            sides = self._shown(0, olds[before]), self._shown(1, news[name])
            if _NAMEABLE.fullmatch(name) and self._compare_leaf(
                part, at, f"{prefix}{before}", olds[before], news[name], depth
            ):
                continue
            if before != name:
                change = _entry("rename", field=at, to=f"{prefix}{before}")
                note = f"version OLDER may call it '{before}'"
                part.differences.append(Difference(at, *sides, note, change))
            if _NAMEABLE.fullmatch(name):
                self._compare(part, at, olds[before], news[name], depth + 1)
            elif _without_notes(olds[before]) != _without_notes(news[name]):
                part.differences.append(Difference(at, *sides, "changes do not support this name"))
            if (before in required[0]) != (name in required[1]):
                note = f"only version {'OLDER' if before in required[0] else 'NEWER'} requires it"
                if part.differences[first:] and part.differences[first].field == at:
                    known = part.differences[first]
                    note = ", ".join(filter(None, (known.note, note)))
                    part.differences[first] = known._replace(note=note)
                else:
                    part.differences.append(Difference(at, *sides, note))
        moved = self._moved({one: olds[one] for one in lone_old}, news, {*renamed.values()})
        for name in lone_old:
            if name in moved:
                at, schema = moved[name]
                change = _entry("rename", field=f"{prefix}{at}", to=f"{prefix}{name}")
                sides = self._shown(0, olds[name]), self._shown(1, schema)
                note = f"version OLDER may call it '{name}'"
                part.differences.append(Difference(f"{prefix}{at}", *sides, note, change))
                self._compare(part, f"{prefix}{at}", olds[name], schema, depth + 1)
            elif name not in renamed.values():
                value = self._read(0, olds[name])[1]
                keys = {"value": _example(value)} if name in required[0] else {}
                change = _entry("remove", field=f"{prefix}{name}", **keys)
                removed = Difference(
                    f"{prefix}{name}", self._shown(0, olds[name]), None, change=change
                )
                part.differences.append(removed)

    def _added(self, at: str, schema: object, *, is_required: bool) -> Difference:
        note = "version NEWER requires it" if is_required else "optional"
        example = _example(self._read(1, schema)[1])
        change = _entry("default", field=at, value=example) if is_required else None
        return Difference(at, None, self._shown(1, schema), note, change)

    def _renamed(
        self, olds: Mapping[str, object], news: Mapping[str, object], lone_new: Sequence[str]
    ) -> Iterator[tuple[str, str]]:
        left = dict(olds)
        for name in lone_new:
            shown = self._shown(1, news[name])
            equal = [one for one in left if self._shown(0, left[one]) == shown]
            near = max(left, key=lambda one: (one in equal, _likeness(one, name)), default="")
            is_only = equal == [near] and len(lone_new) == 1
            if is_only or _likeness(near, name) >= _SIMILAR:
                del left[near]
                yield name, near

    def _moved(
        self, olds: Mapping[str, object], news: Mapping[str, object], renamed: set[str]
    ) -> dict[str, tuple[str, object]]:
        """Return the place and the schema of each older field that is now inside an object."""
        leaves = [
            leaf._replace(path=f"{name}.{leaf.path}")
            for name, schema in news.items()
            if name not in olds and _NAMEABLE.fullmatch(name)
            for leaf in self._leaves(schema)
        ]
        found: dict[str, tuple[str, object]] = {}
        for name, schema in olds.items():
            kind = _kind(self._read(0, schema)[1])
            alike = [
                leaf
                for leaf in leaves
                if leaf.kind == kind
                and max(_likeness(name, one) for one in (leaf.path, leaf.path.rpartition(".")[2]))
                >= _SAME
            ]
            if name not in renamed and len(alike) == 1:
                found[name] = alike[0].path, alike[0].schema
                leaves.remove(alike[0])
        return found

    def _shown(self, side: int, schema: object) -> object:
        """Return a schema as the file shows it: without descriptions, components as `$ref`."""
        name, read = self._read(side, schema)
        if name and _nested(read):
            return {"$ref": name}
        return _without_notes(read)

    def _read(self, side: int, schema: object) -> tuple[str, Data]:
        """Return the name of the component, if it is one, and its schema with `allOf` merged."""
        name, depth = "", 0
        while isinstance(schema, Mapping) and depth < _DEEPEST:
            depth += 1
            if isinstance(schema.get("$ref"), str):
                name = schema["$ref"].rpartition("/")[2]
                schema = followed(self._data[side], schema)
            choices = schema.get("anyOf") or schema.get("oneOf")
            if choices and "properties" not in schema:
                real = [one for one in choices if one != {"type": "null"}]
                if len(real) == 1 and isinstance(real[0], Mapping):
                    is_null = len(real) < len(choices) or schema.get("nullable") is True
                    name, read = self._read(side, real[0])
                    return name, {**read, "nullable": True} if is_null else read
                return name, {**schema, "anyOf": real}
            parts = schema.get("allOf")
            if not isinstance(parts, list):
                return name, schema
            if len(parts) == 1 and not schema.keys() - {"allOf", "default", "nullable", *_NOTES}:
                schema = parts[0]
                continue
            merged: dict[str, Any] = {key: schema[key] for key in schema if key != "allOf"}
            for one in parts:
                _, read = self._read(side, one)
                for key, value in read.items():
                    if key == "properties":
                        merged[key] = {**value, **merged.get(key, {})}
                    elif key == "required":
                        merged[key] = [*merged.get(key, ()), *value]
                    else:
                        merged.setdefault(key, value)
            return name, merged
        return name, {}


def _nested(schema: Data) -> bool:
    return "properties" in schema or bool(_map_of(schema)) or "items" in schema


def _map_of(schema: Data) -> Data:
    inner = schema.get("additionalProperties")
    return inner if isinstance(inner, Mapping) and "properties" not in schema else {}


def _facts(schema: Data) -> dict[str, object]:
    """Return the constraints of a schema, without those of its fields and elements."""
    found = _without_notes(schema)
    assert isinstance(found, dict)
    kinds = found.pop("type", None)
    types = {kinds} if isinstance(kinds, str) else set(kinds or ())
    if found.pop("nullable", False):
        types.add("null")
    for key in ("default", "properties", "required", "items", "discriminator", "allOf", "oneOf"):
        found.pop(key, None)
    if isinstance(found.get("additionalProperties"), dict):
        del found["additionalProperties"]
    if "anyOf" in found:
        found["anyOf"] = sorted(
            one["$ref"].rpartition("/")[2] if "$ref" in one else json.dumps(_without_notes(one))
            for one in schema["anyOf"]
            if isinstance(one, Mapping)
        )
    if isinstance(found.get("enum"), list):
        found["enum"] = sorted(found["enum"], key=str)
    return {"type": " or ".join(sorted(types)), **found} if types else found


def _without_notes(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            str(key): {str(name): _without_notes(one) for name, one in inner.items()}
            if key == "properties" and isinstance(inner, Mapping)
            else _without_notes(inner)
            for key, inner in value.items()
            if key not in _NOTES and not str(key).startswith("x-")
        }
    return [_without_notes(one) for one in value] if isinstance(value, list) else value


def _value_change(at: str, old: Data, new: Data) -> SuggestedChange | None:
    """Return the change for a value whose type or enum differs."""
    kinds = _kind(old), _kind(new)
    texts = [name for name, one in new.get("properties", {}).items() if _kind(one) == "string"]
    if kinds == ("string", "object") and at and len(texts) > 1:
        return _entry("join", fields=[f"{at}.{name}" for name in texts], into=at)
    if "array" in kinds and kinds[0] != kinds[1] and all(kinds):
        return _entry("unwrap" if kinds[1] == "array" else "wrap", field=at) if at else None
    if {*kinds} == {"string", "integer"} and "date-time" in (old.get("format"), new.get("format")):
        forms = ["rfc3339" if kind == "string" else "unix" for kind in kinds]
        return _entry("time", field=at, newer=forms[1], older=forms[0])
    words = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}
    if all(kind in words for kind in kinds) and words[kinds[0]] != words[kinds[1]]:
        return _entry("type", field=at, newer=words[kinds[1]], older=words[kinds[0]])
    olds, news = ([*map(str, one.get("enum") or ())] for one in (old, new))
    is_short = 0 < len(olds) <= _MOST_WORDS and 0 < len(news) <= _MOST_WORDS
    if kinds == ("string", "string") and is_short and {*olds} != {*news}:
        values = _matched(olds, news)
        return _entry("map", field=at, values=values, unknown="keep") if values else None
    if _null(new) and not _null(old) and kinds[0] == kinds[1]:
        return _entry("omit_null", field=at)
    return None


def _kind(schema: object) -> str:
    kinds = schema.get("type", "") if isinstance(schema, Mapping) else ""
    some = [kinds] if isinstance(kinds, str) else [one for one in kinds if one != "null"]
    return some[0] if len(some) == 1 else ""


def _lists(schema: Data) -> dict[str, Data]:
    """Return the arrays of an object, by name."""
    return {
        name: inner
        for name, inner in schema.get("properties", {}).items()
        if _kind(inner) == "array" and _NAMEABLE.fullmatch(name)
    }


def _null(schema: Data) -> bool:
    return schema.get("nullable") is True or "null" in (schema.get("type") or ())


def _example(schema: Data) -> object:
    for key in ("default", "const", "example"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    return None if _null(schema) else _EMPTY.get(_kind(schema), 0)


def _likeness(one: str, other: str) -> float:
    first, second = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in (one, other))
    return SequenceMatcher(None, first, second).ratio()


def _matched(olds: Sequence[str], news: Sequence[str]) -> dict[str, str]:
    """Map each enum value that only the newer version has to an older value, or to PLACEHOLDER."""
    left = [word for word in olds if word not in news]
    found = {}
    for word in (one for one in news if one not in olds):
        near = max(left, key=lambda one: _likeness(one, word), default=None)
        if near is None or _likeness(near, word) < _SIMILAR:
            found[word] = PLACEHOLDER
        else:
            found[word] = near
            left.remove(near)
    return found


def _entry(name: str, **keys: object) -> SuggestedChange:
    return SuggestedChange(name, keys)


def joined(prefix: str, at: str) -> str:
    """Join two locations. The elements of a body that is an array need no `[]`."""
    if not prefix and at.startswith("[]"):
        return at.removeprefix("[]").removeprefix(".")
    return f"{prefix}{at}" if at.startswith("[") or not (prefix and at) else f"{prefix}.{at}"


def flow(value: object) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, Mapping):
        pairs = (f"{flow(str(key))}: {flow(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _YAML_WORDS:
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
