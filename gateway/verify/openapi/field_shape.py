"""The shape of one place in a body: what the schemas that apply to it allow there."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from gateway.conversion.schema import PLACE, Schema


class Presence(Enum):
    """Whether bodies may have a field, by their schema."""

    DECLARED = "declared"
    """The schema declares it, allows any field there, or does not describe the place."""
    UNDECLARED = "undeclared"
    """The schema declares other fields there, and does not forbid further ones."""
    FORBIDDEN = "forbidden"
    """The schema forbids fields that it does not declare, or has no object there."""


class NameRewriting(NamedTuple):
    """All names of a place, and of what is inside it, written otherwise.

    Attributes:
        write: returns the other name; a name for which it raises ValueError stays.
        but: the names of fields inside which all stay.
    """

    write: Callable[[str], str]
    but: frozenset[str]

    def __call__(self, name: str) -> str:
        """Return the other name."""
        try:
            return self.write(name)
        except ValueError:
            return name


class FieldShape:
    """What one place in a body may hold: all schemas that apply to it. Without any, anything.

    Args:
        schemas: that apply, references to others among them.
        known: the schemas that references lead to.
        bare: whether the place is an object that has no fields but those that changes make.

    Attributes:
        types: the types that the schemas name.
        declaring: the schemas that declare properties.
        fields: the fields of the place, as changes have left them.
        taken: the names of the fields that changes have taken.
        free: what further fields may begin with, which changes have made of free keys.
    """

    def __init__(
        self,
        schemas: Sequence[object] = (),
        known: Mapping[str, object] | None = None,
        *,
        bare: bool = False,
    ) -> None:
        self._known = known or {}
        self._bare = bare
        self._schemas = list(_flat(schemas, self._known))
        self._is_open = any(_is_open(schema) for schema in self._schemas)
        self._items = [one for schema in self._schemas for one in _items(schema)]
        self.types = {name for schema in self._schemas for name in _types(schema)}
        self.declaring = [schema for schema in self._schemas if _declares(schema)]
        self.taken: set[str] = set()
        self.free: set[str] = set()
        declared: dict[str, list[object]] = {}
        for schema in self.declaring:
            for name, inner in _properties(schema).items():
                declared.setdefault(name, []).append(inner)
        self._declared = declared
        self._together = [set(_properties(schema)) for schema in self.declaring]
        self._shapes: dict[str, FieldShape] = {}
        self._elements: FieldShape | None = None
        self._members: FieldShape | None = None
        self._is_mapped = False
        # Of what is made of the schemas later on: a schema may hold itself.
        self._rewritings: tuple[NameRewriting, ...] = ()
        self._rewritings_of: dict[str, tuple[NameRewriting, ...]] = {}

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
        free = any(_is_map(schema) for schema in self._schemas)
        return self._is_mapped or (free and not self.declaring)

    @property
    def elements(self) -> "FieldShape | None":
        """The elements of the array; None where the place holds no array."""
        if self._elements is None and (
            not self.types or self._is_open or "array" in self.types or self._items
        ):
            return self.as_array()
        return self._elements

    def as_array(self) -> "FieldShape":
        """Return the elements, of the array that the place holds from here on if it held none."""
        if self._elements is None:
            self._elements = self._made(self._items, self._rewritings)
        return self._elements

    def with_prefix(self, prefix: str, but: Container[str]) -> list[str]:
        """Return the names of its fields that begin so, but some."""
        return [name for name in self.names if name.startswith(prefix) and name not in but]

    def beside(self, name: str) -> list[str]:
        """Return the names of its fields that a schema declares together with one of them."""
        together = {other for names in self._together if name in names for other in names}
        return [one for one in self.names if one != name and one in together]

    def rest(self, prefix: str) -> Presence:
        """Return whether it may have fields that begin so, beside those that have a name."""
        found = self.inside(f"{prefix}*")  # which no document declares
        return found if isinstance(found, Presence) else Presence.DECLARED

    def inside(self, name: str) -> "FieldShape | Presence":
        """Return the field of that name, or how it is missing."""
        if name in self.taken:
            return Presence.FORBIDDEN if self._is_closed else Presence.UNDECLARED
        if name in self._declared and name not in self._shapes:
            rewritings = self._rewritings_of.get(name, ())
            self._shapes[name] = self._made(self._declared[name], rewritings)
        if name in self._shapes:
            return self._shapes[name]
        if self._is_mapped and self._members is not None:
            return self._members
        if self._is_open or name.startswith((*self.free,)):
            return FieldShape()
        if self.types and "object" not in self.types and not self.declaring:
            return Presence.FORBIDDEN
        further = [inner for schema in self._schemas for inner in _further(schema)]
        if further:
            return self._made(further, self._rewritings)
        if any("patternProperties" in schema for schema in self._schemas):
            return FieldShape()
        if self.declaring or self._bare:
            return Presence.FORBIDDEN if self._is_closed else Presence.UNDECLARED
        return FieldShape()

    def members(self) -> "FieldShape | Presence":
        """Return any field of the place, which has free keys, or how it is missing."""
        if self._members is None:
            if self._is_open:
                return FieldShape()
            if self.types and "object" not in self.types and not self.declaring:
                return Presence.FORBIDDEN
            members = [inner for schema in self._schemas for inner in _further(schema)]
            members += [inner for schema in self._schemas for inner in _patterns(schema)]
            members += [inner for inners in self._declared.values() for inner in inners]
            if not members and self._is_closed:
                return Presence.FORBIDDEN
            self._members = self._made(members, self._rewritings)
        return self._members

    def has_free_key(self, name: str) -> bool:
        """Whether a name is one of any that the place allows, beside those that it declares."""
        free = any(_is_map(schema) or "patternProperties" in schema for schema in self._schemas)
        return free and name not in self._declared

    def put(self, name: str, shape: "FieldShape") -> "FieldShape":
        """Set a field, and return it."""
        self.taken.discard(name)
        self._shapes[name] = shape
        return shape

    def put_elements(self, shape: "FieldShape") -> None:
        """Set the elements of the array that the place holds from here on."""
        self._elements = shape

    def put_members(self, shape: "FieldShape") -> None:
        """Set every member of the object with free keys that the place holds from here on."""
        self._members, self._is_mapped = shape, True
        self._shapes = dict.fromkeys(self.names, shape)

    def rewrite(self, rewriting: NameRewriting) -> None:
        """Write its names otherwise, and those inside it."""
        for name, inner in self._shapes.items():
            if name not in rewriting.but:
                inner.rewrite(rewriting)
        for one in (self._elements, self._members):
            if one is not None:
                one.rewrite(rewriting)
        self._rewritings = (*self._rewritings, rewriting)
        self._rewritings_of = {
            rewriting(name): (
                *self._rewritings_of.get(name, ()),
                *(() if name in rewriting.but else (rewriting,)),
            )
            for name in self._declared
        }
        self._declared = {rewriting(name): inner for name, inner in self._declared.items()}
        self._shapes = {rewriting(name): inner for name, inner in self._shapes.items()}
        self._together = [{rewriting(name) for name in names} for names in self._together]
        self.taken = {rewriting(name) for name in self.taken}

    def _made(self, schemas: Sequence[object], rewritings: Sequence[NameRewriting]) -> "FieldShape":
        made = FieldShape(schemas, self._known)
        for rewriting in rewritings:
            made.rewrite(rewriting)
        return made

    @property
    def _is_closed(self) -> bool:
        if any(schema.get("unevaluatedProperties") is False for schema in self._schemas):
            return True
        closed = (schema.get("additionalProperties") is False for schema in self.declaring)
        return bool(self.declaring) and all(closed)


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
        if isinstance(dependent := schema.get("dependentSchemas"), dict):
            waiting.extend(dependent.values())


def _properties(schema: Schema) -> Mapping[str, object]:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return properties


def _types(schema: Schema) -> list[str]:
    given = schema.get("type", [])
    return given if isinstance(given, list) else [str(given)]


def _items(schema: Schema) -> Iterator[object]:
    prefix = schema.get("prefixItems", ())
    yield from prefix if isinstance(prefix, list) else ()
    if "items" in schema:
        yield schema["items"]


def _declares(schema: Schema) -> bool:
    # Generators write an empty `properties` for objects that they do not describe.
    closed = schema.get("additionalProperties") is False
    return "properties" in schema and (bool(schema["properties"]) or closed)


def _patterns(schema: Schema) -> Iterator[object]:
    patterns = schema.get("patternProperties", {})
    yield from patterns.values() if isinstance(patterns, dict) else ()


_FREE = ("additionalProperties", "unevaluatedProperties")


def _is_map(schema: Schema) -> bool:
    return any(schema.get(key, False) is not False for key in _FREE)


def _further(schema: Schema) -> Iterator[object]:
    """Yield the schemas of the fields that it does not declare."""
    yield from (schema[key] for key in _FREE if schema.get(key, False) is not False)


# Alternatives without any of these do not describe what they allow.
_DESCRIBING = frozenset(
    {
        *("type", "properties", "$ref", "allOf", "anyOf", "oneOf", "items", "prefixItems"),
        *("patternProperties", "enum", "const", "if", "not", *_FREE),
    }
)


def _is_open(schema: Schema) -> bool:
    """Whether one of its alternatives may hold any field, or a reference is not followed."""
    if "$dynamicRef" in schema or "$recursiveRef" in schema:
        return True
    alternatives = (schema.get(key) for key in ("anyOf", "oneOf"))
    return "properties" not in schema and any(
        _is_undescribed(one) for some in alternatives if isinstance(some, list) for one in some
    )


def _is_undescribed(schema: object) -> bool:
    if not isinstance(schema, dict):
        return schema is True
    described = _DESCRIBING & schema.keys()
    return not described or (described == {"type"} and "object" in _types(schema))
