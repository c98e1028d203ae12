"""The shape of a body: its fields as a schema declares them, while changes take and make some."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from gateway.core.conversion.field_path import FieldPath, is_array, keys_of, spell
from gateway.verify.openapi.json_schema import PLACE, Schema, definitions

# A schema may hold itself: arrays in arrays, and fields for suggestions, are followed so deep.
_DEEP = 6


class Presence(Enum):
    """Whether bodies may have a field, by their schema."""

    DECLARED = "declared"
    """The schema declares it, allows any field there, or does not describe the place."""
    UNDECLARED = "undeclared"
    """The schema declares other fields there, and does not forbid further ones."""
    FORBIDDEN = "forbidden"
    """The schema forbids fields that it does not declare, or has no object there."""


class FieldShape:
    """What one place in a body may hold: all schemas that apply to it. Without any, anything.

    Args:
        schemas: that apply, references to others among them.
        known: the schemas that references lead to.

    Attributes:
        types: the types that the schemas name.
        declaring: the schemas that declare properties.
        fields: the fields of the place, as changes have left them.
        taken: the names of the fields that changes have taken.
    """

    def __init__(
        self, schemas: Sequence[object] = (), known: Mapping[str, object] | None = None
    ) -> None:
        self._known = known or {}
        self._schemas = list(_flat(schemas, self._known))
        self._items = [one for schema in self._schemas for one in _items(schema)]
        self.types = {name for schema in self._schemas for name in _types(schema)}
        self.declaring = [schema for schema in self._schemas if "properties" in schema]
        self.taken: set[str] = set()
        declared: dict[str, list[object]] = {}
        for schema in self.declaring:
            properties = schema["properties"]
            assert isinstance(properties, dict)
            for name, inner in properties.items():
                declared.setdefault(name, []).append(inner)
        self._declared = declared
        self._shapes: dict[str, FieldShape] = {}
        self._elements: FieldShape | None = None
        self._members: FieldShape | None = None

    @property
    def names(self) -> list[str]:
        """The names of the fields that the place has."""
        return [name for name in {**self._declared, **self._shapes} if name not in self.taken]

    @property
    def is_array(self) -> bool:
        """Whether the place holds an array, and no object."""
        return self._elements is not None or ("array" in self.types and "object" not in self.types)

    @property
    def is_map(self) -> bool:
        """Whether the place is an object with free keys, and declares no fields of its own."""
        return not self.declaring and any(_is_map(schema) for schema in self._schemas)

    @property
    def elements(self) -> "FieldShape | None":
        """The elements of the array; None where the place holds no array."""
        if self._elements is None and (not self.types or "array" in self.types or self._items):
            return self.as_array()
        return self._elements

    def as_array(self) -> "FieldShape":
        """Return the elements, of the array that the place holds from here on if it held none."""
        if self._elements is None:
            self._elements = FieldShape(self._items, self._known)
        return self._elements

    def inside(self, name: str) -> "FieldShape | Presence":
        """Return the field of that name, or how it is missing."""
        if name in self.taken:
            return Presence.FORBIDDEN if self._is_closed else Presence.UNDECLARED
        if name in self._declared and name not in self._shapes:
            self._shapes[name] = FieldShape(self._declared[name], self._known)
        if name in self._shapes:
            return self._shapes[name]
        if self.types and "object" not in self.types and not self.declaring:
            return Presence.FORBIDDEN
        further = [one["additionalProperties"] for one in self._schemas if _is_map(one)]
        if further:
            return FieldShape(further, self._known)
        if any("patternProperties" in schema for schema in self._schemas):
            return FieldShape()
        if self.declaring or self._shapes or further:
            return Presence.FORBIDDEN if self._is_closed else Presence.UNDECLARED
        return FieldShape()

    def members(self) -> "FieldShape | Presence":
        """Return any field of the place, which has free keys, or how it is missing."""
        if self._members is None:
            if self.types and "object" not in self.types and not self.declaring:
                return Presence.FORBIDDEN
            members = [one["additionalProperties"] for one in self._schemas if _is_map(one)]
            members += [inner for schema in self._schemas for inner in _patterns(schema)]
            members += [inner for inners in self._declared.values() for inner in inners]
            if not members and self._is_closed:
                return Presence.FORBIDDEN
            self._members = FieldShape(members, self._known)
        return self._members

    def put(self, name: str, shape: "FieldShape") -> "FieldShape":
        """Set a field, and return it."""
        self.taken.discard(name)
        self._shapes[name] = shape
        return shape

    @property
    def _is_closed(self) -> bool:
        if any(schema.get("unevaluatedProperties") is False for schema in self._schemas):
            return True
        closed = (schema.get("additionalProperties") is False for schema in self.declaring)
        return bool(self.declaring) and all(closed)


@dataclass(slots=True)
class BodyShape:
    """The fields of a body, or of the elements of an array of them, to which changes apply."""

    root: FieldShape = field(default_factory=FieldShape)

    @classmethod
    def of(cls, schema: Schema) -> "BodyShape":
        """Return the shape of the bodies of a schema."""
        root = FieldShape([schema], definitions(schema))
        for _ in range(_DEEP):
            if root.is_array and root.elements is not None:
                root = root.elements
        return cls(root)

    def look_up(self, path: FieldPath) -> Presence:
        """Return whether bodies may have the field, or its elements where these are meant."""
        holder = self._holder(path)
        found = holder if isinstance(holder, Presence) else holder.inside(path.keys[-1])
        for _ in range(path.elements):
            if not isinstance(found, Presence):
                found = found.elements or Presence.FORBIDDEN
        return found if isinstance(found, Presence) else Presence.DECLARED

    def take(self, path: FieldPath) -> FieldShape:
        """Take a field out and return it; one that is not there may be anything."""
        holder = self._holder(path)
        if isinstance(holder, Presence):
            return FieldShape()
        found = holder.inside(path.keys[-1])
        holder.taken.add(path.keys[-1])
        return FieldShape() if isinstance(found, Presence) else found

    def put(self, path: FieldPath, shape: FieldShape) -> None:
        """Set a field; containers that are not there are made."""
        place = self.root
        for scope in path.scopes:
            for key in keys_of(scope):
                place = _made(place, key)
            if is_array(scope):
                place = place.as_array()
            else:
                members = place.members()
                place = FieldShape() if isinstance(members, Presence) else members
        for key in path.keys[:-1]:
            place = _made(place, key)
        place.put(path.keys[-1], shape)

    def names(self) -> Iterator[str]:
        """Yield the fields that bodies have, as changes name them."""
        return _names(self.root, _DEEP)

    def _holder(self, path: FieldPath) -> FieldShape | Presence:
        """Return what holds the last key of a path, or how it is missing."""
        place = self.root
        for scope in path.scopes:
            for key in keys_of(scope):
                inner = place.inside(key)
                if isinstance(inner, Presence):
                    return inner
                place = inner
            following = place.elements if is_array(scope) else place.members()
            if following is None:
                return Presence.FORBIDDEN
            if isinstance(following, Presence):
                return following
            place = following
        for key in path.keys[:-1]:
            inner = place.inside(key)
            if isinstance(inner, Presence):
                return inner
            place = inner
        return place


def _made(place: FieldShape, key: str) -> FieldShape:
    inner = place.inside(key)
    return place.put(key, FieldShape() if isinstance(inner, Presence) else inner)


def _names(place: FieldShape, depth: int) -> Iterator[str]:
    if depth and place.is_map and isinstance(members := place.members(), FieldShape):
        yield from (f"*.{deeper}" for deeper in _names(members, depth - 1))
    for name in place.names if depth else ():
        inner = place.inside(name)
        if isinstance(inner, Presence):
            continue
        spelt = spell(name)
        yield spelt
        for _ in range(depth):
            if inner.is_array and inner.elements is not None:
                inner, spelt = inner.elements, f"{spelt}[]"
        yield from (f"{spelt}.{deeper}" for deeper in _names(inner, depth - 1))


def _flat(schemas: Sequence[object], known: Mapping[str, object]) -> Iterator[Schema]:
    """Yield the schemas with those that they refer to and combine."""
    seen: set[int] = set()
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        if isinstance(reference := schema.get("$ref"), str):
            waiting.append(known.get(reference.removeprefix(PLACE)))
        for key in ("allOf", "anyOf", "oneOf"):
            waiting.extend(schema.get(key, ()))
        waiting.extend(schema.get(key) for key in ("if", "then", "else"))


def _types(schema: Schema) -> list[str]:
    given = schema.get("type", [])
    return given if isinstance(given, list) else [str(given)]


def _items(schema: Schema) -> Iterator[object]:
    prefix = schema.get("prefixItems", ())
    yield from prefix if isinstance(prefix, list) else ()
    if "items" in schema:
        yield schema["items"]


def _patterns(schema: Schema) -> Iterator[object]:
    patterns = schema.get("patternProperties", {})
    yield from patterns.values() if isinstance(patterns, dict) else ()


def _is_map(schema: Schema) -> bool:
    return schema.get("additionalProperties", False) is not False
