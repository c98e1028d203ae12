"""The fields that bodies may have according to a schema, before and after changes."""

from collections.abc import Container, Iterable, Iterator, Sequence
from copy import copy
from enum import Enum
from functools import partial
from itertools import islice

from gateway.conversion.change import Change
from gateway.conversion.field_path import (
    FieldPath,
    Keys,
    Scope,
    is_array,
    keys_of,
    parse_scopes,
    pointer,
    spell,
)
from gateway.conversion.schema import (
    MADE,
    TYPES,
    Effect,
    Flat,
    Misfit,
    Schema,
    SchemaImage,
    UndecidedError,
    Words,
    definitions,
    elements_of,
    field_of,
    properties_of,
    requires,
    rest_of,
    without_components,
)

# The maximum depth in recursive schemas, in nested arrays, and of suggested fields.
_DEEP = 6
# The maximum number of fields or objects. At the maximum depth, a recursive schema with 40 fields
# has 4,096,000,000 fields.
_MANY = 2_000
_FREE = ("additionalProperties", "unevaluatedProperties")
Place = Sequence[object]
"""The alternative schemas for a location. A value at the location conforms to at least one of them.
"""


class Presence(Enum):
    DECLARED = "declared"
    """The schema declares the field, allows any field in its object, or does not describe the
    object."""
    UNDECLARED = "undeclared"
    """The schema declares other fields of the object, and allows further fields."""
    FORBIDDEN = "forbidden"
    """The schema forbids undeclared fields in the object, or allows no object at this location."""


class _DescribedSchemas(SchemaImage):
    """Schemas with all fields that they describe, including fields under a condition."""

    exact = False
    """Whether a field is required after a change only if it was before."""

    def alternatives(self, schema: object) -> list[Flat]:
        """Return the flat schemas of a schema. If it is too complex, return schemas for any value.

        A schema with properties but without a type is treated as an object.
        """
        try:
            found = super().alternatives(schema)
        except UndecidedError:
            return [{"type": name} for name in TYPES]
        if isinstance(schema, dict) and "type" not in schema and "properties" in schema:
            return [flat for flat in found if flat["type"] == "object"] or found
        return found

    def refused(self, flat: object, reason: str, made: object = False, words: Words = ()) -> object:
        super().refused(flat, reason, made, words)
        return flat if made is False else made

    def put(self, schema: object, keys: Keys, value: object, *, required: bool) -> object:
        return super().put(schema, keys, value, required=required or not self.exact)

    def _parts(self, schema: Schema) -> Iterator[list[Flat]]:
        yield from super()._parts(schema)
        conditional = [schema[key] for key in ("if", "then", "else") if key in schema]
        dependent = schema.get("dependentSchemas")
        if isinstance(dependent, dict):
            conditional += dependent.values()
        if conditional:
            yield [flat for one in conditional for flat in self.alternatives(one)]
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            yield [{"type": name, "additionalProperties": True} for name in TYPES]


class BodyFields:
    def __init__(self, schema: Schema, *, exact: bool = False) -> None:
        self._image = _DescribedSchemas(definitions(schema))
        self._image.exact = exact
        self._body: object = without_components(schema)

    def copy(self) -> "BodyFields":
        return copy(self)

    def apply(self, change: Change | None, place: str, *, upwards: bool) -> list[Misfit]:
        """Apply a change to the schema, and return the refusals of values that it describes.

        Values to which the change does not apply stay unchanged.

        Args:
            change: the change; None allows any value at `place`.
        """
        image = self._image
        image.misfits.clear()
        with image.keeping(values=False):
            effect: Effect = _anything
            if change is not None:
                effect = change.directed(upwards=upwards).effect_in(image)
            if change is not None and change.whole:
                self._body = effect(self._body)  # type: ignore[arg-type]  # it holds any schema
                return [*image.misfits]
            scopes: tuple[Scope, ...] = parse_scopes(place) if place else ()
            if change is not None:
                scopes = (*scopes, *change.scopes)
            inside = partial(image.inside, scopes=scopes, effect=effect)
            self._body = image.objects(self._body, inside, object())
        return [*image.misfits]

    def assume(self, path: FieldPath) -> None:
        image = self._image
        put = partial(image.put, keys=path.keys, value=True, required=False)
        with image.keeping(values=False):
            inside = partial(image.inside, scopes=path.scopes, effect=put)
            self._body = image.objects(self._body, inside, object())

    @property
    def body(self) -> Place:
        return [self._body]

    @property
    def root(self) -> Place:
        """The body, or the elements if the body is an array."""
        root: Place = [self._body]
        for _ in range(_DEEP):
            inner = self.elements(root)
            if not self.is_array(root) or isinstance(inner, Presence):
                break
            root = inner
        return root

    def types(self, place: Place) -> set[str]:
        """Return the types that a location allows; empty if any type is allowed."""
        found = {flat["type"] for flat in self._flats(place)}
        return set() if {*TYPES} <= found else found

    def is_array(self, place: Place) -> bool:
        types = self.types(place)
        return "array" in types and "object" not in types

    def inside(self, place: Place, name: str) -> Place | Presence:
        """Return the schemas of a field, or the reason why it has none."""
        objects = self._objects(place)
        found = [one for flat in objects if (one := field_of(flat, name)) is not False]
        return found or self._missing(objects)

    def members(self, place: Place) -> Place | Presence:
        objects = self._objects(place)
        found: list[object] = []
        for flat in objects:
            found += [flat[key] for key in _FREE if flat.get(key, False) is not False]
            found += flat.get("patternProperties", {}).values()
            found += properties_of(flat).values()
            found += [True] if not flat.keys() & {*_FREE, "patternProperties", "properties"} else []
        return found or self._missing(objects)

    def elements(self, place: Place) -> Place | Presence:
        arrays = [flat for flat in self._flats(place) if flat["type"] == "array"]
        return [elements_of(flat) for flat in arrays] or Presence.FORBIDDEN

    def names_of(self, place: Place) -> list[str]:
        return [
            *dict.fromkeys(name for flat in self._objects(place) for name in properties_of(flat))
        ]

    def look_up(self, path: FieldPath) -> Presence:
        """Return whether bodies may have a field, including the elements or members in its path."""
        holder = self._holder(path)
        found = holder if isinstance(holder, Presence) else self.inside(holder, path.keys[-1])
        for _ in range(path.elements):
            if not isinstance(found, Presence):
                found = self.elements(found)
        if path.members and not isinstance(found, Presence):
            found = self.members(found)
        return found if isinstance(found, Presence) else Presence.DECLARED

    def requires(self, path: FieldPath) -> bool:
        """Return whether the objects that contain a field require it; false for elements."""
        holder = self._holder(path)
        if path.elements or path.members or isinstance(holder, Presence):
            return False
        return any(requires(flat, path.keys[-1]) for flat in self._objects(holder))

    def in_place_of(self, target: FieldPath, source: FieldPath) -> list[str]:
        """Return the names of fields that a moved field would overwrite.

        Args:
            target: the new location: another name in the same object, or the name of an enclosing
                object, whose other fields would be overwritten.
        """
        holder = self._holder(target)
        in_container = target.elements or target.members
        if target.scopes != source.scopes or in_container or isinstance(holder, Presence):
            return []
        *outer, key = target.keys
        if source.keys[:-1] == tuple(outer):
            return [key] if key in self._beside(holder, source.keys[-1]) else []
        inner = self.inside(holder, key)
        if source.keys[: len(target.keys)] != target.keys or isinstance(inner, Presence):
            return []
        return self._beside(inner, source.keys[len(target.keys)])

    def look_up_prefixed(self, path: FieldPath, prefix: str, but: Container[str]) -> Presence:
        """Return whether bodies may have a field whose name begins with `prefix`, except `but`.

        `path` leads to a field in the same object.
        """
        holder = self._holder(path)
        if isinstance(holder, Presence):
            return holder
        names = self.names_of(holder)
        if any(name.startswith(prefix) and name not in but for name in names):
            return Presence.DECLARED
        rest = self.inside(holder, f"{prefix}*")  # no document declares this name
        return rest if isinstance(rest, Presence) else Presence.DECLARED

    def names(self) -> Iterator[str]:
        found = (
            f"{at}{spell(name)}" for place, at in self._places() for name in self.names_of(place)
        )
        return islice(found, _MANY)

    def has_anywhere(self, name: str) -> bool:
        places = islice(self._places(), _MANY)
        return any(not isinstance(self.inside(place, name), Presence) for place, _ in places)

    def has_free_key(self, place: Place, name: str) -> bool:
        free = any(
            "patternProperties" in flat or any(flat.get(key, False) is not False for key in _FREE)
            for flat in self._objects(place)
        )
        return free and name not in self.names_of(place)

    def _flats(self, place: Place) -> list[Flat]:
        return [flat for schema in place for flat in self._image.alternatives(schema)]

    def _objects(self, place: Place) -> list[Flat]:
        return [flat for flat in self._flats(place) if flat["type"] == "object"]

    @staticmethod
    def _missing(objects: Iterable[Flat]) -> Presence:
        closed = all(
            MADE not in flat and any(flat.get(key) is False for key in _FREE) for flat in objects
        )
        return Presence.FORBIDDEN if closed else Presence.UNDECLARED

    def _beside(self, place: Place, name: str) -> list[str]:
        flats = [properties_of(flat) for flat in self._objects(place)]
        together = (one for fields in flats if name in fields for one in fields if one != name)
        return [*dict.fromkeys(together)]

    def _holder(self, path: FieldPath) -> Place | Presence:
        place = self.root
        for scope in path.scopes:
            for key in keys_of(scope):
                inner = self.inside(place, key)
                if isinstance(inner, Presence):
                    return inner
                place = inner
            following = self.elements(place) if is_array(scope) else self.members(place)
            if isinstance(following, Presence):
                return following
            place = following
        for key in path.keys[:-1]:
            inner = self.inside(place, key)
            if isinstance(inner, Presence):
                return inner
            place = inner
        return place

    def _places(self) -> Iterator[tuple[Place, str]]:
        level: list[tuple[Place, str]] = [(self.root, "")]
        for depth in range(_DEEP, 0, -1):
            below: list[tuple[Place, str]] = []
            for place, at in level:
                yield place, at
                objects = self._objects(place)
                inside: dict[str, list[object]] = {}
                for flat in objects:
                    for name, schema in properties_of(flat).items():
                        inside.setdefault(name, []).append(schema)
                rest = [one for flat in objects if isinstance(one := rest_of(flat), dict)]
                if rest and not inside:
                    below.append((rest, f"{at}*."))
                for name, schemas in inside.items():
                    inner: Place = schemas
                    spelt = at + spell(name)
                    for _ in range(depth):
                        elements = self.elements(inner)
                        if not self.is_array(inner) or isinstance(elements, Presence):
                            break
                        inner, spelt = elements, f"{spelt}[]"
                    below.append((inner, f"{spelt}."))
            level = below


def _anything(_: Flat) -> object:
    return True


def generalized(path: Sequence[str | int], *schemas: Schema) -> str:
    """Return a JSON Pointer with `*` for array indexes and undeclared keys.

    An index in the path may be a string.
    """
    places: list[tuple[BodyFields, Place]] = []
    for schema in schemas:
        fields = BodyFields(schema)
        places.append((fields, fields.body))
    steps: list[str] = []
    for step in path:
        inner: list[tuple[BodyFields, Place | Presence]]
        named = any(step in fields.names_of(place) for fields, place in places)
        if isinstance(step, int) or (step.isdecimal() and not named):
            name = "*"
            inner = [
                (one, one.elements(place) if one.is_array(place) else one.members(place))
                for one, place in places
            ]
        elif any(one.has_free_key(place, step) for one, place in places):
            name, inner = "*", [(one, one.members(place)) for one, place in places]
        else:
            name, inner = step, [(one, one.inside(place, step)) for one, place in places]
        steps.append(name)
        places = [(one, place) for one, place in inner if not isinstance(place, Presence)]
    return pointer(*steps)
