"""The shape of a body: its fields as a schema declares them, while changes take and make some."""

from collections.abc import Container, Iterator, Sequence
from itertools import islice

from gateway.conversion.field_path import FieldPath, is_array, keys_of, pointer, spell
from gateway.conversion.schema import Schema, definitions
from gateway.verify.openapi.field_shape import FieldShape, NameRewriting, Presence

# A schema may hold itself: arrays in arrays, and fields for suggestions, are followed so deep.
_DEEP = 6
# A schema of forty fields that hold it has four thousand million so deep.
_MANY = 2_000


def generalized(path: Sequence[str | int], *schemas: Schema) -> str:
    """Return a JSON Pointer, with `*` for the index of any element and for any free key.

    Args:
        path: the keys and indices that lead to a field; an index may be a text.
        schemas: any of which may declare the keys.
    """
    places = [FieldShape([schema], definitions(schema)) for schema in schemas]
    steps: list[str] = []
    for step in path:
        inner: list[FieldShape | Presence | None]
        if isinstance(step, int) or (
            step.isdecimal() and not any(step in place.names for place in places)
        ):
            name = "*"
            inner = [place.elements if place.is_array else place.members() for place in places]
        elif any(place.has_free_key(step) for place in places):
            name, inner = "*", [place.members() for place in places]
        else:
            name, inner = step, [place.inside(step) for place in places]
        steps.append(name)
        places = [place for place in inner if isinstance(place, FieldShape)]
    return pointer(*steps)


def spelt(field: str, *schemas: Schema) -> str:
    """Return a field as changes name it: `items[].price` for `/items/*/price`.

    Args:
        field: a JSON Pointer with `*` for any element of an array and for any free key.
        schemas: any of which may declare what `*` is. A body that is an array is converted element
            by element, so that its own elements have no name.
    """
    places = [FieldShape([schema], definitions(schema)) for schema in schemas]
    text = ""
    for step in field.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        inner: list[FieldShape | Presence | None]
        if key != "*":
            text += f".{spell(key)}" if text else spell(key)
            inner = [place.inside(key) for place in places]
        elif any(place.is_map and not place.is_array for place in places):
            text += ".*" if text else "*"
            inner = [place.members() for place in places]
        else:
            text += "[]" if text else ""
            inner = [place.elements for place in places]
        places = [place for place in inner if isinstance(place, FieldShape)]
    return text


class BodyShape:
    """The fields of a body, or of the elements of an array of them, to which changes apply."""

    def __init__(self, body: FieldShape | None = None) -> None:
        self.body = body or FieldShape()

    @classmethod
    def of(cls, schema: Schema) -> "BodyShape":
        """Return the shape of the bodies of a schema."""
        return cls(FieldShape([schema], definitions(schema)))

    @property
    def root(self) -> FieldShape:
        """The body, or the elements of a body that is an array."""
        root = self.body
        for _ in range(_DEEP):
            if root.is_array and root.elements is not None:
                root = root.elements
        return root

    def look_up(self, path: FieldPath) -> Presence:
        """Return whether bodies may have the field, or the elements or members that are meant."""
        holder = self._holder(path)
        found = holder if isinstance(holder, Presence) else holder.inside(path.keys[-1])
        for _ in range(path.elements):
            if not isinstance(found, Presence):
                found = found.elements or Presence.FORBIDDEN
        if path.members and not isinstance(found, Presence):
            found = found.members()
        return found if isinstance(found, Presence) else Presence.DECLARED

    def find(self, path: FieldPath) -> FieldShape:
        """Return a field, or its elements or members that are meant; without it, anything."""
        holder = self._holder(path)
        found = holder if isinstance(holder, Presence) else holder.inside(path.keys[-1])
        for _ in range(path.elements):
            found = Presence.FORBIDDEN if isinstance(found, Presence) else found.as_array()
        if path.members and not isinstance(found, Presence):
            found = found.members()
        return FieldShape() if isinstance(found, Presence) else found

    def take(self, path: FieldPath) -> FieldShape:
        """Take a field out and return it; one that is not there may be anything.

        Elements are not taken out of their array, nor members out of their object.
        """
        found, holder = self.find(path), self._holder(path)
        if not (isinstance(holder, Presence) or path.elements or path.members):
            holder.taken.add(path.keys[-1])
        return found

    def put(self, path: FieldPath, shape: FieldShape) -> None:
        """Set a field, or its elements or members; containers that are not there are made."""
        place = self._made_holder(path)
        if not path.elements and not path.members:
            place.put(path.keys[-1], shape)
            return
        place = _made(place, path.keys[-1])
        if path.members:
            place.put_members(shape)
            return
        for _ in range(path.elements - 1):
            place = place.as_array()
        place.put_elements(shape)

    def in_place_of(self, target: FieldPath, source: FieldPath) -> list[str]:
        """Return the names of fields that a field does not leave room for where it moves.

        Args:
            target: where it moves: to another name beside it, or to that of an object that it is
                in, of which then all other parts are in its way.
            source: where it is.
        """
        holder = self._holder(target)
        in_container = target.elements or target.members
        if target.scopes != source.scopes or in_container or isinstance(holder, Presence):
            return []
        *outer, key = target.keys
        if source.keys[:-1] == tuple(outer):
            return [key] if key in holder.beside(source.keys[-1]) else []
        inner = holder.inside(key)
        if source.keys[: len(target.keys)] != target.keys or isinstance(inner, Presence):
            return []
        return inner.beside(source.keys[len(target.keys)])

    def look_up_prefixed(self, path: FieldPath, prefix: str, but: Container[str]) -> Presence:
        """Return whether bodies may have fields with a prefix beside others.

        Args:
            path: of a field beside them.
            prefix: what they begin with.
            but: the names that begin so as well, and are none of them.
        """
        holder = self._holder(path)
        if isinstance(holder, Presence):
            return holder
        return Presence.DECLARED if holder.with_prefix(prefix, but) else holder.rest(prefix)

    def gather(self, path: FieldPath, prefix: str, but: Container[str]) -> None:
        """Put the fields with a prefix into an object, without it.

        Args:
            path: of the object, which stands beside them.
            prefix: what they begin with.
            but: the names that begin so as well, and stay.
        """
        holder = self._holder(path)
        if isinstance(holder, Presence):
            return
        made = FieldShape(bare=holder.rest(prefix) is not Presence.DECLARED)
        for name in holder.with_prefix(prefix, but):
            made.put(name.removeprefix(prefix), self._moved(holder, name))
        holder.put(path.keys[-1], made)

    def scatter(self, path: FieldPath, prefix: str) -> None:
        """Put the fields of an object beside it, with a prefix."""
        found, holder = self.take(path), self._made_holder(path)
        for name in found.with_prefix("", ()):
            holder.put(f"{prefix}{name}", self._moved(found, name))
        if found.rest("") is Presence.DECLARED:
            holder.free.add(prefix)

    def _moved(self, holder: FieldShape, name: str) -> FieldShape:
        """Take a field that is there."""
        found = holder.inside(name)
        holder.taken.add(name)
        assert isinstance(found, FieldShape)
        return found

    def _made_holder(self, path: FieldPath) -> FieldShape:
        """Return what holds the last key of a path; containers that are not there are made."""
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
        return place

    def names(self) -> Iterator[str]:
        """Yield the fields that bodies have, as changes name them, of very many the outermost."""
        found = (f"{at}{spell(name)}" for place, at in _places(self.root) for name in place.names)
        return islice(found, _MANY)

    def has_anywhere(self, name: str) -> bool:
        """Return whether bodies may have a field of that name, however deep."""
        places = islice(_places(self.root), _MANY)
        return any(isinstance(place.inside(name), FieldShape) for place, _ in places)

    def rewrite(self, path: FieldPath | None, rewriting: NameRewriting) -> None:
        """Write all names in a field otherwise, or in all of the body where there is no path."""
        if path is None:
            self.body.rewrite(rewriting)
        elif self.look_up(path) is Presence.DECLARED:
            self.find(path).rewrite(rewriting)

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
    return place.put(key, FieldShape(bare=True) if isinstance(inner, Presence) else inner)


def _places(root: FieldShape) -> Iterator[tuple[FieldShape, str]]:
    """Yield objects and where they are, level by level, so that none is left out beside another."""
    level = [(root, "")]
    for depth in range(_DEEP, 0, -1):
        below: list[tuple[FieldShape, str]] = []
        for place, at in level:
            yield place, at
            if place.is_map and isinstance(members := place.members(), FieldShape):
                below.append((members, f"{at}*."))
            for name in place.names:
                inner, spelt = place.inside(name), at + spell(name)
                if isinstance(inner, Presence):
                    continue
                for _ in range(depth):
                    if inner.is_array and inner.elements is not None:
                        inner, spelt = inner.elements, f"{spelt}[]"
                below.append((inner, f"{spelt}."))
        level = below
