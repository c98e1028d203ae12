"""`join` and `split`: several fields in one version, one string with all parts in the other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from gateway.conversion.change import Change, DirectedChange
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.conversion_error import ConversionError, ErrorPlace, is_within
from gateway.conversion.document import (
    MISSING,
    JsonForm,
    JsonObject,
    get,
    holder_of,
    put,
    refuse,
    take,
)
from gateway.conversion.field_path import Keys, Scope, common_keys
from gateway.conversion.parameter_change import ParameterChange, ParameterValues, recombined
from gateway.conversion.schema import Flat, SchemaImage, an_object, union, wide


class _PartsSection(ChangeSection):
    separator: Annotated[str, Field(min_length=1)] = " "
    """The string between two parts. The default is a space."""

    def parts_and_whole(self) -> tuple[tuple[str, ...], str]:
        raise NotImplementedError

    def own_losses(self) -> Iterable[Loss]:
        _, whole = self.parts_and_whole()
        text = f"'{whole}' is split at the first '{self.separator}', wherever it was joined"
        yield Loss(True, text + self._lacking())

    def _lacking(self) -> str:
        """Return the end of the loss message, about a string with fewer parts; may be empty."""
        return ""


class _JoinSection(_PartsSection):
    fields: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields or parameters of the newer version, in the order in which they are joined."""
    into: str
    """The field or parameter of the older version that holds the joined string."""

    def parts_and_whole(self) -> tuple[tuple[str, ...], str]:
        return self.fields, self.into


class _SplitSection(_PartsSection):
    inverse = True

    field: str
    """The field or parameter of the newer version that holds the string."""
    into: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields or parameters of the older version that hold the parts, in the order of the
    parts."""

    def parts_and_whole(self) -> tuple[tuple[str, ...], str]:
        return self.into, self.field


class _ParameterParts(_PartsSection, ParameterSection):
    trailing: Literal["drop", "keep"] = "drop"
    """Whether separators at the end of the string are kept or dropped. The default is drop."""

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        parts, whole = self.parts_and_whole()
        names = tuple(context.name(part, "fields") for part in parts)
        if len({*names, whole}) <= len(names):
            context.mistakes.add("two of the names are the same; name each once")
            return None
        name = context.name(whole, "into")
        return join_parameters(names, name, self.separator, closed=self.trailing == "keep")


class JoinParameter(_JoinSection, _ParameterParts):
    """Join parameters: the older version has one parameter with the values of several."""

    keyword = "join"


class SplitParameter(_SplitSection, _ParameterParts):
    """Split a parameter: the older version has several parameters with the parts of its value."""

    keyword = "split"


class _BodyParts(_PartsSection, BodySection):
    default: str | None = ""
    """The value, which may be null, of a part that the string lacks. The default is the empty
    text."""
    optional: tuple[str, ...] = ()
    """The parts that a shorter string lacks, in this order; the default is the last parts."""

    def _lacking(self) -> str:
        parts, _ = self.parts_and_whole()
        optional = [part for part in self.optional if part in parts]
        lacked = [*optional, *(part for part in reversed(parts) if part not in optional)]
        return f"; with fewer parts, it has no {', then no '.join(lacked[:-1])}"

    def overwritten(self) -> Iterator[Loss]:
        parts, whole = self.parts_and_whole()
        named = ", ".join(f"'{part}'" for part in parts)
        text = f"{named} come back as '{whole}' is split at the first '{self.separator}'"
        yield Loss(self.inverse, text, True)
        lost = f"'{whole}' loses each '{self.separator}' beside an empty part"
        yield Loss(not self.inverse, lost, True)

    def compile_body(self, context: BuildContext) -> Change | None:
        parts, whole = self.parts_and_whole()
        keys = ("into", "field") if self.inverse else ("fields", "into")
        named = ((part, (keys[0], index)) for index, part in enumerate(parts))
        paths = context.paths(*named, (whole, (keys[1],)))
        if paths is None:
            return None
        *some, text = paths
        fields = tuple(path.keys for path in some)
        if not context.apart(fields):
            return None
        if len({*self.optional}) < len(self.optional) or not {*self.optional} <= {*parts}:
            context.mistakes.add(
                f"must name each part at most once; the parts are {', '.join(parts)}", "optional"
            )
            return None
        optional = tuple(map(parts.index, self.optional))
        return join(text.scopes, fields, text.keys, self.separator, self.default, optional)


class Join(_JoinSection, _BodyParts):
    """Join fields: the older version has one string with the values of several fields."""

    keyword = "join"


class Split(_SplitSection, _BodyParts):
    """Split a string: the older version has several fields with its parts."""

    keyword = "split"


def join_parameters(
    parts: tuple[str, ...], whole: str, separator: str, *, closed: bool = False
) -> ParameterChange:
    """Return a change that joins several parameters into one for the older version.

    An absent parameter becomes an empty part.

    Args:
        closed: Whether separators before empty parts at the end are kept, as in `2026-01-01..`.
    """

    def split(values: ParameterValues) -> ParameterValues:
        pieces = values[whole].split(separator, len(parts) - 1)
        return {name: piece for name, piece in zip(parts, pieces, strict=False) if piece}

    def joined(values: ParameterValues) -> ParameterValues:
        pieces = [values.get(name, "") for name in parts]
        if any(separator in piece for piece in pieces[:-1]):
            raise ValueError(f"contains '{separator}', which separates the parts")
        while not closed and len(pieces) > 1 and not pieces[-1]:
            pieces.pop()
        return {whole: separator.join(pieces)}

    return recombined(parts, (whole,), split, joined)


def join(
    scopes: tuple[Scope, ...],
    parts: tuple[Keys, ...],
    whole: Keys,
    separator: str,
    missing: str | None = "",
    optional: tuple[int, ...] = (),
) -> Change:
    """Return a change that joins fields into one string for the older version.

    A downgrade joins the parts that are present and not empty. An upgrade splits the string at each
    separator from the left, and the last part contains all further separators. If the string has
    too few parts, the `optional` parts are missing first, in their order, then the other parts from
    the last to the first. A missing part becomes `missing` in an upgrade, and a part with this
    value is left out in a downgrade.

    An upgrade restores the parts if only missing parts are empty, and if no part except the last
    contains the separator.

    In both directions, an absent field stays absent, and null stays null.
    """
    steps = _Join(parts, whole, separator, missing, optional)
    return Change(
        scopes,
        tuple(keys[:1] for keys in (*parts, whole)),
        DirectedChange(steps.up, steps.split_effect, steps.origin_of_part),
        DirectedChange(steps.down, steps.joined_effect, steps.origin_of_text),
    )


@dataclass(frozen=True, slots=True)
class _Join:
    parts: tuple[Keys, ...]
    whole: Keys
    separator: str
    missing: str | None
    optional: tuple[int, ...]

    # Whether the string replaces the object with the parts, as `name` replaces `name.firstName`.
    # `_keys` are then relative to this object.
    _inside: bool = field(init=False, repr=False, compare=False)
    _keys: tuple[Keys, ...] = field(init=False, repr=False, compare=False)
    # The indices of all parts, in the order in which they are missing from shorter strings.
    _lacked: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = len(self.whole)
        inside = all(len(part) > depth and part[:depth] == self.whole for part in self.parts)
        keys = tuple(part[depth:] for part in self.parts) if inside else self.parts
        object.__setattr__(self, "_inside", inside)
        object.__setattr__(self, "_keys", keys)
        others = (index for index in reversed(range(len(keys))) if index not in self.optional)
        object.__setattr__(self, "_lacked", (*self.optional, *others))

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        holder = holder_of(fields, self.whole, form)
        if holder is None:
            return
        key = self.whole[-1]
        text = form.open(holder[key])
        pieces: list[str | None]
        if isinstance(text, str):
            pieces = [*text.split(self.separator, len(self.parts) - 1)]
            for index in sorted(self._lacked[: len(self.parts) - len(pieces)]):
                pieces.insert(index, self.missing)
        elif text is not None:
            refuse("a string", text, *self.whole)
        elif self._inside:
            return
        else:
            pieces = [None] * len(self.parts)
        if self._inside:
            fields = {}
            holder[key] = fields
        else:
            take(fields, self.whole, form)
        for keys, piece in zip(self._keys, pieces, strict=True):
            if len(keys) == 1:
                fields[keys[0]] = piece
            else:
                put(fields, keys, piece, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        if not self._inside:
            found = self._found(fields, form)
            if found:
                joined = self._joined(found, fields, form)
                for part in self.parts:
                    take(fields, part, form)
                nothing = found.count(None) == len(found)
                put(fields, self.whole, None if nothing else joined, form)
            return
        holder = holder_of(fields, self.whole, form)
        if holder is None:
            return
        key = self.whole[-1]
        container = form.open(holder[key])
        if container is None:
            return
        if not isinstance(container, dict):
            refuse("an object", container, *self.whole)
        try:
            holder[key] = self._joined(self._found(container, form), container, form)
        except ConversionError as error:
            raise error.under(*self.whole) from None

    def split_effect(self, flat: Flat, image: SchemaImage) -> object:
        if not self._inside:
            return self._split(flat, image)
        return image.value(flat, self.whole, lambda one: self._parts_effect(one, image))

    def joined_effect(self, flat: Flat, image: SchemaImage) -> object:
        if not self._inside:
            return self._joined_effect(flat, image)
        return image.value(flat, self.whole, lambda one: self._text_inside(one, image), parts=True)

    def _parts_effect(self, flat: Flat, image: SchemaImage) -> object:
        if flat["type"] != "string":
            return image.refused(flat, f"expected a string, found {flat['type']}")
        return self._with_parts(an_object({}), image, required=True)

    def _with_parts(self, schema: object, image: SchemaImage, *, required: bool) -> object:
        lacked = self._lacked[: len(self._keys) - 1]
        for index, keys in enumerate(self._keys):
            part: object = {"type": "string"}
            if index in lacked and self.missing is None:
                part = {"type": ["string", "null"]}
            schema = image.put(schema, keys, part, required=required)
        return schema

    def _text_inside(self, flat: Flat, image: SchemaImage) -> object:
        if flat["type"] != "object":
            return image.refused(flat, f"expected an object, found {flat['type']}")
        for keys in self._keys:
            self._part(image, image.take(flat, keys).value)
        return wide({"type": "string"})

    def _part(self, image: SchemaImage, value: object) -> bool:
        found = image.alternatives(value)
        for one in found:
            if one["type"] not in ("string", "null"):
                image.refused(one, "not every part is a string")
        return any(one["type"] == "null" for one in found)

    def _split(self, flat: Flat, image: SchemaImage) -> object:
        rest, value, required = image.take(flat, self.whole)
        found: list[object] = [] if required else [flat if value is False else rest]
        for one in image.alternatives(value):
            made: object = rest
            if one["type"] == "null":
                for keys in self._keys:
                    made = image.put(made, keys, {"type": "null"}, required=True)
            elif one["type"] == "string":
                made = self._with_parts(rest, image, required=True)
            else:
                made = image.refused(one, f"expected a string, found {one['type']}")
            found.append(made)
        return union(found)

    def _joined_effect(self, flat: Flat, image: SchemaImage) -> object:
        rest, required, all_null, there = flat, False, True, False
        for keys in self.parts:
            rest, value, always = image.take(rest, keys)
            if value is False:
                continue
            there, required = True, required or always
            if not self._part(image, value) and always:
                all_null = False
        if not there:
            return flat
        text = wide({"type": ["string", "null"] if all_null else "string"})
        return image.put(rest, self.whole, text, required=required)

    def origin_of_part(self, place: ErrorPlace) -> ErrorPlace:
        made = (self.whole,) if self._inside else self.parts
        if any(is_within(place, keys) for keys in made):
            return self.whole
        # The upgrade removed the string, so a location inside it becomes its parent.
        return self.whole[:-1] if is_within(place, self.whole) else place

    def origin_of_text(self, place: ErrorPlace) -> ErrorPlace:
        return common_keys(self.parts) if is_within(place, self.whole) else place

    def _found(self, fields: JsonObject, form: JsonForm) -> list[str | None]:
        found: list[str | None] = []
        opened = form.open
        for keys in self._keys:
            key = keys[0]
            if key not in fields:
                continue
            value = opened(fields[key]) if len(keys) == 1 else get(fields, keys, form)
            if isinstance(value, str) or value is None:
                found.append(value)
            elif value is not MISSING:
                refuse("a string", value, *keys)
        return found

    def _joined(self, parts: list[str | None], fields: JsonObject, form: JsonForm) -> str:
        if self.missing and self.missing in parts:
            parts = self._without_missing(fields, form)
        return self.separator.join(filter(None, parts))

    def _without_missing(self, fields: JsonObject, form: JsonForm) -> list[str | None]:
        found = [get(fields, keys, form) for keys in self._keys]
        parts = [part if isinstance(part, str) else None for part in found]
        for index in self._lacked[:-1]:
            if parts[index] and parts[index] != self.missing:
                break
            parts[index] = None
        return parts
