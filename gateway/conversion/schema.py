"""Schemas of documents: their analysis, and their conversion by changes.

A schema is a JSON Schema (draft 2020-12) with the referenced schemas in `components.schemas`. It is
resolved one level at a time, so it may be recursive.

The *effect* of a change maps the schema of an object before the change to the schema after it, or
to a schema that allows more, which is marked as wide. It also records refusals.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from gateway.conversion.document import same
from gateway.conversion.field_path import Inside, Keys, Members, Scope

Schema = dict[str, object]
Flat = dict[str, Any]
"""A flat schema: it has exactly one type, and no $ref, anyOf or oneOf. Members of `allOf` are
constraints that are not analysed."""
Words = Iterable[object] | None
Effect = Callable[[Flat], object]
"""A function that maps the flat schema before a change to the schema after the change."""

PLACE = "#/components/schemas/"
_REFERENCE = re.compile(r'"\$ref":"#/components/schemas/([^"]*)"')
TYPES = ("object", "array", "string", "number", "boolean", "null")
SENT_EMPTY = "x-sent-empty"
"""The keyword that marks objects that the sender may have sent empty, and to which a change has
added a field. Such an object stays if a later change removes the field."""
WIDE = "x-wide"
"""The keyword that marks a schema as wide: it allows more than can occur. The value is WIDE_VALUES
or WIDE_TYPES."""
WIDE_VALUES = 1
"""The schema allows more values of the same type than can occur."""
WIDE_TYPES = 2
"""The schema allows values of more types than can occur."""


MADE = "x-made"
"""The keyword that marks an object created by a change."""


_NULL: Schema = {"type": "null"}
# The maximum number of alternatives of a schema; more raise UndecidedError.
_MANY = 200
_OF_TYPE: Mapping[str, frozenset[str]] = {
    "object": frozenset(
        {
            *("properties", "required", "additionalProperties", "unevaluatedProperties"),
            *("patternProperties", "propertyNames", "minProperties", "maxProperties"),
            *("dependentRequired", "dependentSchemas"),
        }
    ),
    "array": frozenset(
        {
            *("items", "prefixItems", "unevaluatedItems", "contains", "minContains"),
            *("maxContains", "minItems", "maxItems", "uniqueItems"),
        }
    ),
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "number": frozenset(
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    ),
}
_LOWER = frozenset(
    {"minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties", "minContains"}
)
_UPPER = frozenset(
    {"maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties", "maxContains"}
)
_OPAQUE = ("not", "if", "$dynamicRef", "$recursiveRef")
# Constraints that may no longer hold after a change of an object's fields.
_OF_FIELDS = frozenset(
    {
        *("allOf", "patternProperties", "propertyNames", "minProperties", "maxProperties"),
        *("dependentRequired", "dependentSchemas", "enum"),
    }
)
_encode = msgspec.json.Encoder(order="sorted").encode


JSON_TYPES: Mapping[str, frozenset[str]] = {
    "text": frozenset({"string"}),
    "number": frozenset({"number", "integer"}),
    "boolean": frozenset({"boolean"}),
}
"""The JSON Schema types for each scalar type of gateway.yaml."""


class UndecidedError(Exception):
    """A schema is too complex to be analysed. The message is the reason."""


class Taken(NamedTuple):
    """The result of `SchemaImage.take`; `value` is False if the object has no such field."""

    rest: Flat
    value: object
    required: bool


class SchemaUnion(NamedTuple):
    """The members of `anyOf` or `oneOf`; a schema without them is its only member.

    Attributes:
        is_exclusive: Whether values have to fit exactly one member, as in `oneOf`.
    """

    members: list[object]
    is_exclusive: bool
    discriminator: Mapping[str, Any] = MappingProxyType({})


class Components(dict[str, object]):
    """The components of a document, and a cache of flattened schemas.

    Attributes:
        opened: the flattened schemas, by the class that has created them and by their text.
        references: the components to which each component refers directly.
    """

    def __init__(self, schemas: Mapping[str, object] = MappingProxyType({})) -> None:
        super().__init__(schemas)
        self.opened: dict[type, dict[bytes, list[Flat]]] = {}
        self.references: dict[str, frozenset[str]] = {}


def definitions(schema: Schema) -> Components:
    components = schema.get("components")
    schemas = components["schemas"] if isinstance(components, dict) else {}
    return schemas if isinstance(schemas, Components) else Components(schemas)


def without_components(schema: Schema) -> Schema:
    return {key: one for key, one in schema.items() if key != "components"}


def with_components(schema: Schema, sources: Iterable[object]) -> Schema:
    """Return a schema with the components of other schemas, which usually share them."""
    found = {
        id(one["components"]): one["components"]
        for one in sources
        if isinstance(one, dict) and "components" in one
    }
    if len(found) > 1:
        merged = Components()
        for each in found.values():
            merged |= each["schemas"]
        return {**schema, "components": {"schemas": merged}}
    return {**schema, "components": next(iter(found.values()))} if found else schema


def reachable(schema: Schema) -> Schema:
    """Return a schema with only those components to which it refers, directly or indirectly."""
    components, root = definitions(schema), without_components(schema)
    found: dict[str, object] = {}
    following = [*references_of(root)]
    while following:
        name = following.pop()
        if name not in found and name in components:
            found[name] = components[name]
            if name not in components.references:
                components.references[name] = references_of(found[name])
            following += components.references[name]
    return {**root, "components": {"schemas": found}} if found else root


def references_of(schema: object) -> frozenset[str]:
    """Return the names of the components to which a schema refers directly."""
    return frozenset(_REFERENCE.findall(text_of(schema).decode()))


def text_of(schema: object) -> bytes:
    """Return a schema as canonical JSON, which is the same for equal schemas."""
    return _encode(schema)


def type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case float() if not value.is_integer():
            return "number"
        case _:
            return "integer"


def union(schemas: Iterable[object]) -> object:
    found: dict[bytes, object] = {}
    for schema in schemas:
        for member in _members(schema):
            if member is not False:
                found.setdefault(text_of(member), member)
    if not found:
        return False
    return next(iter(found.values())) if len(found) == 1 else {"anyOf": [*found.values()]}


def _members(schema: object) -> list[object]:
    if isinstance(schema, dict) and schema.keys() == {"anyOf"}:
        members: list[object] = schema["anyOf"]
        return members
    return [schema]


def wide(schema: Flat, width: int = WIDE_VALUES) -> Flat:
    """Return a schema with the mark WIDE, which means that it allows more than can occur."""
    return {**schema, WIDE: max(width, schema.get(WIDE, 0))}


ANYTHING: Flat = {WIDE: WIDE_TYPES}


def words_of(flat: Flat) -> list[Any] | None:
    words: list[Any] | None = flat.get("enum", [False, True] if flat["type"] == "boolean" else None)
    return words


def rest_of(flat: Flat) -> object:
    """Return the schema of undeclared fields, or False if undeclared fields are forbidden.

    An object schema that declares fields and has no keyword for other fields is assumed to forbid
    other fields.
    """
    for key in ("additionalProperties", "unevaluatedProperties"):
        if key in flat:
            return flat[key]
    return "patternProperties" in flat or not flat.get("properties")


def properties_of(flat: Flat) -> dict[str, object]:
    return {name: one for name, one in flat.get("properties", {}).items() if one is not False}


def field_of(flat: Flat, name: str) -> object:
    return flat.get("properties", {}).get(name, rest_of(flat))


def requires(flat: Flat, name: str) -> bool:
    return name in flat.get("required", ())


def an_object(fields: Mapping[str, object], required: Iterable[str] | None = None) -> Flat:
    """Return the schema of an object with exactly these fields. By default, all are required."""
    names = list(fields if required is None else required)
    return {
        "type": "object",
        "properties": dict(fields),
        "required": names,
        "additionalProperties": False,
        MADE: True,
    }


def with_field(flat: Flat, name: str, schema: object, *, required: bool) -> Flat:
    if schema is False:
        return _without(flat, name)
    properties = {**flat.get("properties", {}), name: schema}
    names = [one for one in flat.get("required", ()) if one != name]
    made = _loosened(flat)
    if "additionalProperties" not in made and "unevaluatedProperties" not in made:
        rest = rest_of(flat)
        if rest is not False:  # without the keyword, `rest_of` would forbid other fields
            made["additionalProperties"] = rest
    if required and not (MADE in flat or flat.get("required")):
        made = {**made, SENT_EMPTY: True}
    return {**made, "properties": properties, "required": [*names, name] if required else names}


def _without(flat: Flat, name: str) -> Flat:
    properties = {key: one for key, one in flat.get("properties", {}).items() if key != name}
    made = _loosened(flat)
    rest = rest_of(flat)
    if rest is not False:
        made["additionalProperties"] = rest
    if rest is not False or not (properties or "additionalProperties" in flat):
        properties[name] = False  # `rest_of` allows all fields if no field is declared
    required = [one for one in flat.get("required", ()) if one != name]
    return {**made, "properties": properties, "required": required}


def _loosened(flat: Flat) -> Flat:
    made = {key: value for key, value in flat.items() if key not in _OF_FIELDS}
    return made if len(made) == len(flat) else wide(made)


def listed(values: Iterable[object]) -> object:
    found = [_plain(value) for value in values]
    return {"enum": found} if found else False


def _plain(value: object) -> object:
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def scaled(flat: Flat, factor: Fraction, plus: Fraction = Fraction(0)) -> Flat:
    made = {
        key: value
        for key, value in flat.items()
        if key not in (*_BOUNDS, "multipleOf", "allOf", "format")
    }
    for key, opposite in _BOUNDS.items():
        if isinstance(bound := flat.get(key), int | float):
            moved = Fraction(str(bound)) * factor + plus
            made[key if factor > 0 else opposite] = _plain(
                Decimal(moved.numerator) / moved.denominator
            )
    return wide(made)


_BOUNDS = {
    "minimum": "maximum",
    "maximum": "minimum",
    "exclusiveMinimum": "exclusiveMaximum",
    "exclusiveMaximum": "exclusiveMinimum",
}


def elements_of(flat: Flat) -> object:
    if flat.get("maxItems") == 0:
        return False
    prefix = flat.get("prefixItems", ())
    items = flat.get("items", flat.get("unevaluatedItems", True))
    return union((*prefix, items)) if prefix else items


def counts_of(flat: Flat) -> tuple[int, int | None]:
    return flat.get("minItems", 0), flat.get("maxItems")


def an_array(items: object, least: int = 0, most: int | None = None) -> Flat:
    made: Flat = {"type": "array", "items": items}
    if least:
        made["minItems"] = least
    return made if most is None else {**made, "maxItems": most}


class Schemas:
    def __init__(self, components: Components) -> None:
        self.components = components
        self._opened = components.opened.setdefault(type(self), {})
        self._seen: dict[int, tuple[object, list[Flat]]] = {}
        self._opening: set[str] = set()

    def alternatives(self, schema: object) -> list[Flat]:
        """Split a schema into flat schemas. Each of its values fits at least one of them.

        If members of `oneOf` may overlap, their flat schemas are marked as wide.

        Raises:
            UndecidedError: The schema has too many alternatives, is defined only by itself, or
                refers to an unknown schema.
        """
        # To encode a large schema as JSON is slow, and many calls have the same object.
        held, known = self._seen.get(id(schema), (None, []))
        if held is schema:
            return known
        key = text_of(schema)
        if key not in self._opened:
            self._opened[key] = list(self._open(schema))
        self._seen[id(schema)] = schema, self._opened[key]
        return self._opened[key]

    def target(self, schema: object) -> object:
        """Return the schema to which a reference leads; any other schema is returned itself."""
        for _ in range(len(self.components)):
            if not (isinstance(schema, dict) and schema.keys() == {"$ref"}):
                break
            schema = self.components.get(str(schema["$ref"]).removeprefix(PLACE), schema)
        return schema

    def as_union(self, schema: object) -> SchemaUnion:
        """Return the members of a schema that consists of `anyOf` or `oneOf` alone."""
        target = self.target(schema)
        if not isinstance(target, dict):
            return SchemaUnion([schema], is_exclusive=False)
        for key in ("anyOf", "oneOf"):
            members = target.get(key)
            if not (isinstance(members, list) and target.keys() <= {key, "discriminator"}):
                continue
            others = [one for one in members if one != _NULL]
            if len(members) > len(others) == 1:  # `nullable` beside `oneOf` in OpenAPI 3.0
                inner = self.as_union(others[0])
                if all(flat["type"] != "null" for flat in self.alternatives(others[0])):
                    return inner._replace(members=[*inner.members, _NULL])
            named = target.get("discriminator")
            found = named if isinstance(named, dict) else {}
            return SchemaUnion(members, is_exclusive=key == "oneOf", discriminator=found)
        return SchemaUnion([schema], is_exclusive=False)

    def _open(self, schema: object) -> Iterable[Flat]:
        if schema is False:
            return []
        if schema is True or not isinstance(schema, dict):
            return [{"type": name} for name in TYPES]
        found = list(_flats(schema))
        for part in self._parts(schema):
            found = [
                one for flat in found for other in part if (one := _merged(flat, other)) is not None
            ]
            if len(found) > _MANY:
                raise UndecidedError(f"a schema has more than {_MANY} alternatives")
        return {text_of(flat): flat for flat in found}.values()

    def _parts(self, schema: Schema) -> Iterator[list[Flat]]:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = reference.removeprefix(PLACE)
            if name in self._opening or name not in self.components:
                raise UndecidedError(f"'{name}' is not defined, or only by a reference to itself")
            self._opening.add(name)
            try:
                yield self.alternatives(self.components[name])
            finally:
                self._opening.discard(name)
        for key in ("allOf", "anyOf", "oneOf"):
            members = schema.get(key)
            if not isinstance(members, list):
                continue
            opened = [self.alternatives(member) for member in members]
            if key == "allOf":
                yield from opened
            elif key == "anyOf" or self._apart(opened):
                yield [flat for some in opened for flat in some]
            else:
                yield [wide(flat) for some in opened for flat in some]

    def _apart(self, members: Sequence[Sequence[Flat]]) -> bool:
        return all(
            self._differ(flat, each)
            for index, one in enumerate(members)
            for other in members[index + 1 :]
            for flat in one
            for each in other
        )

    def _differ(self, one: Flat, other: Flat) -> bool:
        merged = _merged(one, other)
        if merged is None:
            return True
        if merged["type"] != "object":
            return False
        for name in {*one.get("required", ())} & {*other.get("required", ())}:
            some, others = (self.words(field_of(each, name)) for each in (one, other))
            if some and others and not any(same(word, each) for word in some for each in others):
                return True
        return False

    def words(self, schema: object) -> list[Any] | None:
        """Return the values in `enum` or `const`; None if the schema has neither."""
        schema = self.target(schema)
        if not isinstance(schema, dict):
            return None
        if "const" in schema:
            return [schema["const"]]
        words = schema.get("enum")
        return words if isinstance(words, list) else None


def _flats(schema: Schema) -> Iterator[Flat]:
    given = schema.get("type")
    types = [given] if isinstance(given, str) else given if isinstance(given, list) else TYPES
    words = [schema["const"]] if "const" in schema else schema.get("enum")
    opaque: list[Schema] = [{key: schema[key]} for key in _OPAQUE if key in schema]
    for one in opaque:
        if "if" in one:
            one |= {key: schema[key] for key in ("then", "else") if key in schema}
    for name in types:
        if name == "integer" and "number" in types:
            continue
        known = _OF_TYPE.get("number" if name == "integer" else name, frozenset())
        flat: Flat = {"type": name}
        flat |= {key: value for key, value in schema.items() if key in known}
        flat |= {key: schema[key] for key in ("format", WIDE, MADE, SENT_EMPTY) if key in schema}
        if opaque:
            flat["allOf"] = opaque
        if isinstance(words, list):
            own = [word for word in words if _is_of(word, name)]
            whole = [word for word in own if type_of(word) == "integer"]
            if name == "number" and whole and len(whole) == len(own):
                flat["type"] = "integer"
            if not own:
                continue
            flat["enum"] = own
        yield flat


def _is_of(word: object, name: str) -> bool:
    found = type_of(word)
    return found == name or (found == "integer" and name == "number")


def _merged(one: Flat, other: Flat) -> Flat | None:
    types = {one["type"], other["type"]}
    if len(types) > 1 and types != {"integer", "number"}:
        return None
    made: Flat = {**other, **one, "type": "integer" if "integer" in types else one["type"]}
    if made["type"] == "object":
        _merge_fields(one, other, made)
    opaque = [*one.get("allOf", ()), *other.get("allOf", ())]
    for key in sorted(one.keys() & other.keys() - _MERGED):
        mine, theirs = one[key], other[key]
        if key in _COMBINED:
            made[key] = _COMBINED[key](mine, theirs)
        elif not same(mine, theirs):
            opaque.append({key: theirs})
    if opaque:
        made["allOf"] = list({text_of(each): each for each in opaque}.values())
    return None if made.get("enum") == [] else made


_MERGED = frozenset(
    {"type", "allOf", "properties", "additionalProperties", "unevaluatedProperties"}
)
_COMBINED: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(_LOWER, max),
    **dict.fromkeys(_UPPER, min),
    "enum": lambda one, other: [word for word in one if any(same(word, each) for each in other)],
    "required": lambda one, other: list(dict.fromkeys((*one, *other))),
    "items": lambda one, other: both(one, other),
    WIDE: max,
}


def _merge_fields(one: Flat, other: Flat, made: Flat) -> None:
    properties: dict[str, object] = {}
    for flat, beside in ((one, other), (other, one)):
        for name, schema in flat.get("properties", {}).items():
            if name in properties:
                continue
            there = beside.get("properties", {})
            also = there[name] if name in there else beside.get("additionalProperties", True)
            properties[name] = both(schema, also)
    if "properties" in one or "properties" in other:
        made["properties"] = properties
    for key in ("additionalProperties", "unevaluatedProperties"):
        if key in one and key in other:
            made[key] = both(one[key], other[key])


def both(one: object, other: object) -> object:
    if one is True or one == {} or same(one, other):
        return other
    if other is True or other == {}:
        return one
    return False if False in (one, other) else {"allOf": [one, other]}


_ID_TYPES = ("string", "integer", "number")
# Images of the same document share its components, so converted components have unique names.
_NUMBERS = count(1)


class Misfit(NamedTuple):
    """The refusal of values that a schema describes.

    Attributes:
        words: The refused values; empty if they are not known.
        partial: Whether other values of the same type are converted.
    """

    reason: str
    words: tuple[object, ...] = ()
    partial: bool = True


class SchemaImage(Schemas):
    """Schemas, and the refusals that the effects of changes record.

    `refusals` has the reasons of all refusals that the schemas do not exclude, and `misfits` those
    of values that the schemas describe. `format: date-time` excludes no string, but it describes
    only times in RFC 3339.
    """

    def __init__(self, components: Components) -> None:
        super().__init__(components)
        self.refusals: list[str] = []
        self.misfits: list[Misfit] = []
        self._keeps_way = self._keeps_values = False
        self._known: dict[tuple[bytes, object], object] = {}
        self._pending: dict[tuple[bytes, object], str | None] = {}

    @contextmanager
    def keeping(self, *, values: bool) -> Iterator[None]:
        """Treat the changes within the `with` block as lenient.

        If a path leads through a value that is not an object, the value stays unchanged and is not
        refused.

        Args:
            values: Whether other values that do not fit a change are also unchanged.
        """
        before = self._keeps_way, self._keeps_values
        self._keeps_way, self._keeps_values = True, values
        try:
            yield
        finally:
            self._keeps_way, self._keeps_values = before

    def refused(self, flat: object, reason: str, made: object = False, words: Words = ()) -> object:
        """Record that a change may refuse values, and return the schema after the change.

        Args:
            words: The refused values; empty if they are not known, and None if the schema describes
                none of them.
        """
        if self._keeps_values:
            return union((made, flat))
        self.refusals.append(reason)
        if words is not None:
            self.misfits.append(Misfit(reason, tuple(words), made is not False))
        return made

    def misfit(self, reason: str) -> None:
        self.refusals.append(reason)
        self.misfits.append(Misfit(reason))

    def _astray(self, flat: Flat) -> object:
        if self._keeps_way or flat["type"] in _ID_TYPES:
            return flat
        self.refusals.append(f"expected an object, found {flat['type']}")
        return False

    def each(self, schema: object, effect: Effect, key: object = None) -> object:
        """Apply an effect to every alternative of a schema, and return the union of the results.

        Args:
            key: An identifier of the effect for recursive schemas, where the effect may reach the
                same schema again. None if it cannot.
        """
        if key is None:
            return self._each(schema, effect)
        known = text_of(schema), key
        if known in self._known:
            return self._known[known]
        if known in self._pending:
            name = self._pending[known] or f"converted.{next(_NUMBERS)}"
            self._pending[known] = name
            return {"$ref": f"{PLACE}{name}"}
        self._pending[known] = None
        made = self._each(schema, effect)
        if (own := self._pending.pop(known)) is not None:
            self.components[own] = made
            made = {"$ref": f"{PLACE}{own}"}
        self._known[known] = made
        return made

    def _each(self, schema: object, effect: Effect) -> object:
        flats = self.alternatives(schema)
        made = [effect(flat) for flat in flats]
        if all(one is flat for one, flat in zip(made, flats, strict=True)):
            return schema
        return union(made)

    def objects(self, schema: object, effect: Effect, key: object) -> object:
        def of(flat: Flat) -> object:
            if flat["type"] == "object":
                return effect(flat)
            if flat["type"] != "array":
                return flat
            items = elements_of(flat)
            made = self.objects(items, effect, key)
            return flat if made is items else _of_elements(flat, made)

        return self.each(schema, of, key)

    def inside(
        self, flat: Flat, scopes: Sequence[Scope], effect: Effect, key: object = None
    ) -> object:
        if not scopes:
            return effect(flat)
        first, rest = scopes[0], scopes[1:]
        if isinstance(first, Inside):
            return self.reach(flat, first.keys, lambda one: self.inside(one, rest, effect, key))
        if isinstance(first, Members):
            return self.reach(
                flat,
                first.keys,
                lambda one: self.members(one, lambda each: self._at(each, rest, effect, key)),
            )
        return self.value(flat, first, lambda one: self._elements(one, rest, effect, key))

    def _elements(self, flat: Flat, scopes: Sequence[Scope], effect: Effect, key: object) -> object:
        return self.elements(flat, lambda each: self._at(each, scopes, effect, key))

    def _at(self, schema: object, scopes: Sequence[Scope], effect: Effect, key: object) -> object:
        def of(flat: Flat) -> object:
            if flat["type"] == "null":
                return flat
            if scopes and scopes[0] == ():
                return self._elements(flat, scopes[1:], effect, key)
            if flat["type"] != "object":
                return self._astray(flat)
            return self.inside(flat, scopes, effect, key)

        return self.each(schema, of, None if scopes else key)

    def elements(self, flat: Flat, convert: Callable[[object], object]) -> object:
        """Convert the schema of the elements of an array. Values of other types are refused."""
        if flat["type"] != "array":
            return self._astray(flat)
        items = elements_of(flat)
        made = convert(items)
        return flat if made is items else _of_elements(flat, made)

    def members(self, flat: Flat, convert: Callable[[object], object]) -> Flat:
        made = flat
        for name, schema in properties_of(flat).items():
            if (other := convert(schema)) is not schema:
                made = with_field(made, name, other, required=requires(flat, name))
        rest = rest_of(flat)
        if rest is not False and (other := convert(rest)) is not rest:
            made = {**_loosened(made), "additionalProperties": other}
        return made

    def reach(self, flat: Flat, keys: Keys, effect: Effect) -> object:
        """Apply an effect to the object at `keys`. A null or absent object is unchanged."""
        if not keys:
            return effect(flat)

        def of(one: Flat) -> object:
            return effect(one) if one["type"] == "object" else self._astray(one)

        return self.value(flat, keys, of)

    def value(
        self, flat: Flat, keys: Keys, effect: Effect, *, nulls: bool = False, parts: bool = False
    ) -> object:
        """Apply an effect to the value of a field of an object.

        Args:
            nulls: Whether the effect also applies to null. If false, null is unchanged.
            parts: Whether the effect itself records which parts of the value the change reads.
        """
        key, *inner = keys
        schema = field_of(flat, key)
        if schema is False:
            return flat

        def of(one: Flat) -> object:
            if one["type"] == "null" and (inner or not nulls):
                return one
            if not inner:
                return effect(one)
            if one["type"] != "object":
                return self._astray(one)
            return self.value(one, tuple(inner), effect, nulls=nulls)

        made = self.each(schema, of)
        if made is schema:
            return flat
        if made is False and requires(flat, key):
            return False
        return with_field(flat, key, made, required=requires(flat, key))

    def may_have(self, flat: Flat, keys: Keys) -> bool:
        schema = field_of(flat, keys[0])
        if len(keys) == 1:
            return schema is not False and bool(self.alternatives(schema))
        return any(
            one["type"] == "object" and self.may_have(one, keys[1:])
            for one in self.alternatives(schema)
        )

    def may_be_id(self, flat: Flat, keys: Keys) -> bool:
        return bool(keys) and any(
            one["type"] in _ID_TYPES or (one["type"] == "object" and self.may_be_id(one, keys[1:]))
            for one in self.alternatives(field_of(flat, keys[0]))
        )

    def field(self, flat: Flat, key: str) -> object:
        return field_of(flat, key)

    def record_reads(self, *fields: Keys) -> None:
        """Record the fields that a change reads. Only the subclass in `field_use` records them."""

    def record_write(self, keys: Keys, schema: object) -> None:
        """Record the schema of the values that a change writes to a field; see `record_reads`."""

    def record_optional_read(
        self, key: str, *, prefix: str | None = None, but: frozenset[str] = frozenset()
    ) -> None:
        """Record a field, or all fields with a prefix, that a change reads if present."""

    def record_reads_anywhere(self, *keys: str) -> None:
        """Record keys that a change searches for at any depth."""

    def take(self, flat: Flat, keys: Keys, *, keep: bool = False) -> Taken:
        """Remove a field from the schema of an object, with objects on the path that become empty.

        If `keep` is true, the object keeps the field.
        """
        if keep:
            return Taken(flat, *self.take(flat, keys)[1:])
        key, *inner = keys
        schema, required = field_of(flat, key), requires(flat, key)
        if schema is False:
            return Taken(flat, False, False)
        if not inner:
            return Taken(_without(flat, key), schema, required)
        left: list[object] = []
        values: list[object] = []
        always, may_go = True, False
        for one in self.alternatives(schema):
            if one["type"] != "object":
                left.append(one if one["type"] == "null" else self._astray(one))
                always = False
                continue
            taken = self.take(one, tuple(inner))
            if taken.value is False:
                left.append(one)
                always = False
                continue
            values.append(taken.value)
            always = always and taken.required
            for rest in self.alternatives(taken.rest):
                empties = not rest.get("required")
                may_go = may_go or empties
                stays = rest_of(rest) is not False or bool(properties_of(rest))
                if stays or not taken.required or SENT_EMPTY in one:
                    left.append(rest)
        if not values:
            return Taken(flat, False, False)
        made = with_field(flat, key, union(left), required=required and not may_go)
        return Taken(made, union(values), required and always)

    def put(self, schema: object, keys: Keys, value: object, *, required: bool) -> object:
        """Set a field in the schema of objects, and create absent objects on the path.

        Args:
            required: Whether the change always sets the field. If false, an existing value may
                remain.
        """
        if value is False:
            return schema
        return self.each(schema, lambda flat: self._put(flat, keys, value, required=required))

    def _put(self, flat: Flat, keys: Keys, value: object, *, required: bool) -> object:
        key, *inner = keys
        before, always = field_of(flat, key), requires(flat, key)
        if not inner:
            made = value if required else union((before, value))
            return with_field(flat, key, made, required=required or always)
        fresh = self.put(an_object({}), tuple(inner), value, required=True)
        if before is False:
            return with_field(flat, key, fresh, required=required)

        def of(one: Flat) -> object:
            if one["type"] == "object":
                return self.put(one, tuple(inner), value, required=required)
            self.refusals.append("expected an object on the way")
            return False if required else one

        made = self.each(before, of)
        made = made if always else union((made, fresh))
        return with_field(flat, key, made, required=required or always)


def _of_elements(flat: Flat, items: object) -> Flat:
    dropped = ("prefixItems", "unevaluatedItems", "contains", "minContains", "maxContains", "allOf")
    made = {key: one for key, one in flat.items() if key not in (*dropped, "uniqueItems", "enum")}
    if len(made) < len(flat):
        made = wide(made)
    if items is False:
        return {**made, "items": False, "maxItems": 0}
    return {**made, "items": items}


def renamed_fields(flat: Flat, write: Callable[[str], str], image: SchemaImage) -> Flat:
    """Rename the fields of an object schema; fields whose names `write` refuses are omitted."""
    properties: dict[str, object] = {}
    required: list[str] = []
    for name, schema in flat.get("properties", {}).items():
        try:
            other = write(name)
        except ValueError as error:
            image.misfit(f"'{name}': {error}")
            continue
        if other in properties:
            image.refusals.append(f"'{other}' may already exist")
        properties[other] = schema
        required += [other] if requires(flat, name) else []
    made = {**_loosened(flat), "properties": properties, "required": required}
    if not properties:
        made["additionalProperties"] = rest_of(flat)
    return made
