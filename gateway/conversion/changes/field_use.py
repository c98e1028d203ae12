"""The fields that a change reads and writes, derived from its effect on schemas.

The effect is applied to the schema of an unknown object, which records each access to a field. The
schema of a field's value contains the name of the field, so that a moved value is recognised.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.conversion.change import Change
from gateway.conversion.document import Number
from gateway.conversion.field_path import Keys, spell
from gateway.conversion.parameter_change import MovedNames, ParameterChange
from gateway.conversion.scalars import Scalar, spelt
from gateway.conversion.schema import (
    MADE,
    TYPES,
    WIDE,
    WIDE_TYPES,
    Components,
    Effect,
    Flat,
    SchemaImage,
    Taken,
    Words,
    union,
)

WHOLE = ""
"""The name of the object itself, where other names are names of its fields."""
_NAME = "x-field"
_BOOLEANS = ({"false", "true"}, {"0", "1"})
_KINDS = {
    "string": "a string",
    "number": "a number",
    "integer": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
}

_ALL = len({*_KINDS.values()})


@dataclass(frozen=True, slots=True)
class ValueKinds:
    """The values that a field may have. Null is always possible and not listed.

    `words` is None if the values are not known.
    """

    types: frozenset[str]
    words: frozenset[Scalar] | None = None

    def overlaps(self, other: "ValueKinds") -> bool:
        if self.words is not None and other.words is not None:
            return bool(self.words & other.words)
        return bool(self.types & other.types)

    def __str__(self) -> str:
        return " or ".join(sorted(map(spelt, self.words) if self.words else self.types))


class OptionalRead(NamedTuple):
    """A field, or all fields with a prefix, that a change reads if present.

    Attributes:
        name: The name as in gateway.yaml. For all fields with a prefix, the prefix and `*`.
        anywhere: Whether the change searches for the field at any depth.
    """

    name: str
    prefix: str | None = None
    but: frozenset[str] = frozenset()
    anywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldUse:
    """The fields that a change reads and writes, by their names in gateway.yaml.

    Attributes:
        takes: The fields of the older version that an upgrade reads.
        makes: The fields of the newer version that a downgrade reads.
        reads: The values that an upgrade can read, for fields with only some readable values.
        leaves: The values that an upgrade writes, for fields where these are known.
        moves: Maps the new field of a moved value to its old field. The value itself is unchanged,
            although other changes may alter parts of it.
        beside: Other fields that an upgrade (True) or a downgrade (False) reads if present.
    """

    takes: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    reads: Mapping[str, ValueKinds] = field(default_factory=dict)
    leaves: Mapping[str, ValueKinds] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[bool, tuple[OptionalRead, ...]] = field(default_factory=dict)

    def at(self, place: str) -> "FieldUse":
        if not place:
            return self

        def named(name: str) -> str:
            return place if name == WHOLE else f"{place}.{name}"

        return FieldUse(
            takes=tuple(map(named, self.takes)),
            makes=tuple(map(named, self.makes)),
            reads={named(name): kinds for name, kinds in self.reads.items()},
            leaves={named(name): kinds for name, kinds in self.leaves.items()},
            moves={named(target): named(source) for target, source in self.moves.items()},
            beside={
                upwards: tuple(
                    one if one.anywhere else one._replace(name=named(one.name)) for one in some
                )
                for upwards, some in self.beside.items()
            },
        )


def field_use(change: Change) -> FieldUse:
    up, down = _traced(change, upwards=True), _traced(change, upwards=False)
    # If only one direction changes a field, such as a number that only a downgrade rounds, the
    # field has the same name in both versions.
    takes = [*up.looked, *(name for name in down.looked if down.stays(name, up))]
    makes = [*down.looked, *(name for name in up.looked if up.stays(name, down))]
    reads = {
        name: kinds
        for name in dict.fromkeys(takes)
        if (kinds := (up if name in up.looked else down).readable(name, down)) is not None
    }
    leaves = {name: kinds for name in up.left if (kinds := up.kinds(name)) is not None}
    moves = {**{source: target for target, source in down.moves.items()}, **up.moves}
    moves |= {name: name for name in down.looked if down.stays(name, up)}
    beside = {True: tuple(up.beside), False: tuple(down.beside)}
    return FieldUse(
        takes=tuple(dict.fromkeys(takes)),
        makes=tuple(dict.fromkeys(makes)),
        reads=reads,
        leaves=leaves,
        moves=moves,
        beside=beside,
    )


def parameter_use(change: ParameterChange) -> FieldUse:
    takes, makes = (
        _looked_for(way)
        for way in (change.names, [MovedNames(*pair[::-1]) for pair in reversed(change.names)])
    )
    return FieldUse(takes=takes, makes=makes)


def _looked_for(way: Iterable[MovedNames]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    made = set[str]()
    for newer, older in way:
        found |= dict.fromkeys(name for name in older if name not in made)
        made |= {*newer}
    return tuple(found)


def _traced(change: Change, *, upwards: bool) -> "_Trace":
    trace = _Trace()
    effect = change.directed(upwards=upwards).effect_in(trace)
    if change.whole:
        effect({_NAME: WHOLE})
        if WHOLE in trace.looked:
            trace.of_body()
        return trace
    given: Flat = {"type": "object", "additionalProperties": True, _NAME: WHOLE}
    made = trace.inside(given, change.scopes, effect)
    if made is not given and not trace.noted:
        trace.record_reads(())
    return trace


class _Trace(SchemaImage):
    """Records the fields that the effect of one direction of a change reads and writes.

    Attributes:
        refused_types: For each field, the types with refused values, and whether some values of the
            type are accepted.
    """

    def __init__(self) -> None:
        super().__init__(Components())
        self.looked: dict[str, None] = {}
        self.left: dict[str, object] = {}
        self.refused_types: dict[str, dict[str, bool]] = {}
        self.moves: dict[str, str] = {}
        self.beside: list[OptionalRead] = []
        self._place = WHOLE
        self._running: list[object] = []
        self.noted = 0

    def stays(self, name: str, other: "_Trace") -> bool:
        return name in self.left and name not in other.looked and name not in other.left

    def of_body(self) -> None:
        """Move the fields of a whole body from `looked` to `beside`.

        The body may be an array whose elements have fields with the same names.
        """
        self.beside += (OptionalRead(name) for name in self.looked if name != WHOLE)
        self.looked, self.left, self.refused_types = {WHOLE: None}, {}, {}
        ends = (one.removeprefix("[]") for pair in self.moves.items() for one in pair)
        self.moves = dict(zip(ends, ends, strict=True))

    def kinds(self, name: str) -> ValueKinds | None:
        flats = [one for one in self.alternatives(self.left[name]) if one["type"] != "null"]
        if not flats or any(one.get(WIDE) == WIDE_TYPES for one in flats):
            return None
        types = frozenset(_KINDS[one["type"]] for one in flats)
        if len(types) == _ALL:
            return None
        words: frozenset[Scalar] | None = None
        if all("enum" in one for one in flats):
            words = frozenset(_scalar(word) for one in flats for word in one["enum"])
        # For values that represent booleans, the type is the shorter description.
        of_booleans = words is not None and {*map(spelt, words)} in _BOOLEANS
        return ValueKinds(types, None if of_booleans else words)

    def readable(self, name: str, back: "_Trace") -> ValueKinds | None:
        """Return the values of a field that this direction can read, or None if it can read all."""
        refused = self.refused_types.get(name)
        if not refused:
            return None
        types = frozenset(_KINDS[one] for one in TYPES if one != "null" and refused.get(one, True))
        left = back.kinds(name) if name in back.left else None
        partly = {_KINDS[one] for one, some in refused.items() if some and one in _KINDS}
        if left is not None and left.types <= types & partly:
            return left
        return None if len(types) == _ALL else ValueKinds(types)

    def record_reads(self, *fields: Keys) -> None:
        for keys in fields:
            self._look(self._named(_spelt(keys)))

    def record_optional_read(
        self, key: str, *, prefix: str | None = None, but: frozenset[str] = frozenset()
    ) -> None:
        self.beside.append(OptionalRead(self._named(key), prefix, but))

    def record_reads_anywhere(self, *keys: str) -> None:
        self.beside += (OptionalRead(key, anywhere=True) for key in keys)

    def record_write(self, keys: Keys, schema: object) -> None:
        self._leave(self._named(_spelt(keys)), schema)

    def field(self, flat: Flat, key: str) -> object:
        name = self._of(flat, (key,))
        self._look(name)
        return {_NAME: name}

    def each(self, schema: object, effect: Effect, key: object = None) -> object:
        if key is None:
            return super().each(schema, effect)
        if key in self._running:  # a recursive call finds only locations that are already recorded
            return schema
        self._running.append(key)
        try:
            return super().each(schema, effect)
        finally:
            self._running.pop()

    def alternatives(self, schema: object) -> list[Flat]:
        found = super().alternatives(schema)
        name = schema.get(_NAME) if isinstance(schema, dict) else None
        return found if name is None else [{**flat, _NAME: name} for flat in found]

    def refused(self, flat: object, reason: str, made: object = False, words: Words = ()) -> object:
        if isinstance(flat, dict) and _NAME in flat:
            types = self.refused_types.setdefault(flat[_NAME], {})
            types[flat["type"]] = made is not False
        return made

    def value(
        self, flat: Flat, keys: Keys, effect: Effect, *, nulls: bool = False, parts: bool = False
    ) -> object:
        name = self._of(flat, keys)
        mark = self.moves.get(name, name)
        before, changed, stays = self.noted, False, False
        replaced: list[object] = []
        with self._within(name):
            for one in self.alternatives({_NAME: mark}):
                if one["type"] != "null" or nulls:
                    made = effect(one)
                    changed = changed or (made is not one and made is not False)
                    stays = stays or made is one
                    replaced.append(made)
        inside = self.noted > before
        if any(not _keeps(made, mark) for made in replaced) or (changed and not inside):
            if not parts:
                self._look(name)
            self._leave(name, {"anyOf": [made for made in replaced if made is not False]})
            self.moves.pop(name, None)
            for made in () if stays else replaced:
                self._moved(name, made)
        return {**flat} if changed else flat

    def _look(self, name: str) -> None:
        self.noted += 1
        if name not in self.left:
            self.looked[name] = None

    def _leave(self, name: str, schema: object) -> None:
        self.noted += 1
        self.left[name] = schema

    def elements(self, flat: Flat, convert: Callable[[object], object]) -> object:
        if flat["type"] != "array":
            return self._astray(flat)
        return self._through(f"{self._place}[]", flat, convert)

    def members(self, flat: Flat, convert: Callable[[object], object]) -> Flat:
        return self._through(self._named("*"), flat, convert)

    def may_have(self, flat: Flat, keys: Keys) -> bool:
        return False

    def take(self, flat: Flat, keys: Keys, *, keep: bool = False) -> Taken:
        name = self._named(_spelt(keys))
        if not keep:
            self._look(name)
        value: object = {_NAME: self.moves.get(name, name)}
        if name in self.left and name not in self.moves:
            value = self.left[name]
        return Taken({**flat}, value, False)

    def put(self, schema: object, keys: Keys, value: object, *, required: bool) -> object:
        name = self._named(_spelt(keys))
        self._moved(name, value)
        source = value.get(_NAME) if isinstance(value, dict) else None
        made = value if source is None else self.left.get(source, True)
        self._leave(name, union((self.left.get(name, False), made)))
        return {**schema} if isinstance(schema, dict) else schema

    def _through(self, name: str, flat: Flat, convert: Callable[[object], object]) -> Flat:
        given: Flat = {_NAME: name}
        with self._within(name):
            made = convert(given)
        return flat if _keeps(made, name) else {**flat}

    def _moved(self, name: str, made: object) -> None:
        for one in made.get("anyOf", [made]) if isinstance(made, dict) else ():
            if not isinstance(one, dict):
                continue
            source = one.get(_NAME)
            if source is not None and source != name:
                self.moves[name] = source
            for key, inner in (("items", "[]"), ("additionalProperties", ".*")):
                if isinstance(one.get(key), dict) and _NAME not in one:
                    self._moved(f"{name}{inner}", one[key])

    @contextmanager
    def _within(self, name: str) -> Iterator[None]:
        before, self._place = self._place, name
        try:
            yield
        finally:
            self._place = before

    def _of(self, flat: Flat, keys: Keys) -> str:
        # A temporary object, which holds a whole body or an element, is not part of the document.
        holds = MADE in flat and _NAME not in flat
        return self._place if holds else self._named(_spelt(keys))

    def _named(self, name: str) -> str:
        return ".".join(filter(None, (self._place, name)))


def _keeps(made: object, name: str) -> bool:
    members = made.get("anyOf", [made]) if isinstance(made, dict) else [made]
    return all(
        one is False or (isinstance(one, dict) and one.get(_NAME) == name) for one in members
    )


def _spelt(keys: Iterable[str]) -> str:
    return ".".join(map(spell, keys))


def _scalar(word: object) -> Scalar:
    if isinstance(word, str | bool | None):
        return word
    return Number(str(word))
