"""`wrap` and `unwrap`: a single value in one version, a list in the other.

A list of parameters is one that is repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import ClassVar, Literal

from gateway.conversion.change import Change, FieldChange, Inverse, Whole
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.conversion_error import (
    Beside,
    ConversionError,
    ErrorPlace,
    moved_back,
)
from gateway.conversion.document import JsonForm, JsonObject, reach, refuse
from gateway.conversion.field_path import Keys, Scope, Tokens, is_array
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterChange,
    ParameterLines,
    Reversed,
    Spelling,
)
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_array,
    counts_of,
    elements_of,
    requires,
    union,
    with_field,
)
from gateway.conversion.steps import BODY


class Several(Enum):
    """What a list of several elements is where there is a single value."""

    FIRST = "first"
    REFUSE = "refuse"
    KEEP = "keep"


class Nothing(Enum):
    """What an empty list is where there is a single value."""

    NULL = "null"
    ABSENT = "absent"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Wrap(FieldChange):
    """The older version has a list where the newer one has a single value.

    Downwards, the value becomes the only element, and what stands for nothing the empty list.
    Upwards, the only element becomes the value, and the empty list what stands for nothing. Null
    stays null, unless it stands for nothing.

    Attributes:
        many: What a list of several becomes: its first element, a refusal, or the list that it is.
            As a list, it comes back as it was; so an only element that is null or a list, which
            would not, is refused then.
        empty: What stands for nothing in the newer version.
    """

    many: Several = Several.FIRST
    empty: Nothing = Nothing.NULL

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        values = form.open(holder[key])
        if values is None:
            return
        if not isinstance(values, list):
            refuse("an array", values, *self.field)
        if len(values) > 1 and self.many is Several.REFUSE:
            raise ConversionError("an array of several elements", self.field)
        if len(values) > 1 and self.many is Several.KEEP:
            return
        if values:
            if self.many is Several.KEEP and isinstance(form.open(values[0]), list | None):
                reason = "is the only element, and would come back as all of the array"
                raise ConversionError(reason, (*self.field, 0))
            holder[key] = values[0]
        elif self.empty is Nothing.NULL:
            holder[key] = None
        elif self.empty is Nothing.ABSENT:
            del holder[key]

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        if holder is None:
            return
        key = self.field[-1]
        if key not in holder:
            # A form has no empty list.
            if self.empty is Nothing.ABSENT and form.typed:
                holder[key] = []
            return
        value = form.open(holder[key])
        if value is None:
            if self.empty is Nothing.NULL and not form.of_places:
                holder[key] = []
        elif not isinstance(value, list):
            holder[key] = [holder[key]]
        elif self.many is not Several.KEEP and (value or self.empty is not Nothing.LIST):
            holder[key] = [holder[key]]

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if upwards:
            return image.reach(flat, self.field[:-1], partial(self._unwrapped, image))
        made = image.value(flat, self.field, self._list_of, nulls=True)
        if self.empty is not Nothing.ABSENT:
            return made

        def filled(holder: Flat) -> object:
            key, empty = self.field[-1], an_array(False, 0, 0)
            schema = union((image.field(holder, key), empty))
            return (
                with_field(holder, key, schema, required=True)
                if not requires(holder, key)
                else holder
            )

        return image.each(made, lambda one: image.reach(one, self.field[:-1], filled))

    def _list_of(self, flat: Flat) -> object:
        if flat["type"] == "null":
            return an_array(False, 0, 0) if self.empty is Nothing.NULL else flat
        if flat["type"] == "array":
            if self.many is Several.KEEP:
                return flat
            if self.empty is Nothing.LIST:
                least, most = counts_of(flat)
                empty = [] if least else [an_array(False, 0, 0)]
                return union((*empty, *([] if most == 0 else [an_array(flat, 1, 1)])))
        return an_array(flat, 1, 1)

    def _unwrapped(self, image: SchemaImage, holder: Flat) -> object:
        key = self.field[-1]
        required = requires(holder, key)
        found: list[object] = []
        for flat in image.alternatives(image.field(holder, key)):
            if flat["type"] == "null":
                found.append(flat)
                continue
            if flat["type"] != "array":
                found.append(image.refused(flat, f"expected an array, found {flat['type']}"))
                continue
            least, most = counts_of(flat)
            if least == 0:
                required = required and self.empty is not Nothing.ABSENT
                found += [{"type": "null"}] if self.empty is Nothing.NULL else []
                found += [an_array(False, 0, 0)] if self.empty is Nothing.LIST else []
            only: object = False
            if most != 0 and (least < 2 or self.many is Several.FIRST):
                only = self._only(flat, image)
                found.append(only)
            if (most is None or most > 1) and self.many is not Several.FIRST:
                keeps = self.many is Several.KEEP
                several = {**flat, "minItems": max(2, least)}
                found.append(several if keeps else image.refused(flat, "several elements", only))
        if not found:
            return holder
        return with_field(holder, key, union(found), required=required)

    def _only(self, flat: Flat, image: SchemaImage) -> object:
        """Return the schema of the element that stands for the list."""
        items = elements_of(flat)
        if self.many is not Several.KEEP:
            return items
        listed = [one for one in image.alternatives(items) if one["type"] in ("array", "null")]
        if not listed:
            return items
        others = [one for one in image.alternatives(items) if one not in listed]
        return image.refused(flat, "an only element may be a list or null", union(others))

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        first: Tokens = (*self.field, 0)
        if self.many is Several.KEEP and _in_list(place, self.field):
            return place  # as it is in a list that stays, and the nearest in any other
        if upwards:
            return moved_back(place, self.field, first)
        return moved_back(place, first, self.field)

    def for_patch(self) -> "Wrap":
        """Return the change for a body in which null removes a field (RFC 7396).

        No field means no change there, so null stands for nothing.
        """
        if self.empty is not Nothing.ABSENT or any(map(is_array, self.scopes)):
            return self
        return replace(self, empty=Nothing.NULL)


def _in_list(place: ErrorPlace, field: Keys) -> bool:
    if isinstance(place, Beside) or place[: len(field)] != field:
        return False
    return isinstance(next(iter(place[len(field) :]), None), int)


@dataclass(frozen=True, slots=True)
class FirstValue:
    """The newer version has one value where the older one may have several.

    Upwards, the first value is left; several are refused if `strict`. Downwards, nothing changes.

    Attributes:
        name: The name of the parameter in both versions.
        strict: Whether several values are refused.
    """

    name: str
    strict: bool = False

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return (MovedNames((self.name,), (self.name,)),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key = spelling.key(self.name)
        places = [index for index, line in enumerate(lines) if line.key == key]
        if len(places) < 2:
            return lines
        if self.strict:
            raise ConversionError("stands twice", Beside(spelling.what, (self.name,)))
        return [line for at, line in enumerate(lines) if at == places[0] or line.key != key]

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return lines


class _ListSection(ChangeSection):
    """What `wrap` and `unwrap` have in common.

    Attributes:
        inverse: whether the newer version has the list, else the older one.
    """

    inverse: ClassVar[bool] = False

    def _cut(self, field: str) -> Loss:
        return Loss(not self.inverse, f"of several elements, {field} keeps the first", True)


class _BodyListSection(_ListSection, BodySection):
    """What `wrap` and `unwrap` of bodies have in common."""

    field: str | None = None
    """The field, which has the same name in both versions, or the elements of an array: `rows[]`;
    the default is the whole body."""
    many: Literal["first", "refuse", "keep"] = "first"
    """The result for a list of several elements: its first element, a refusal, or the unchanged
    list (keep). The default is first."""
    empty: Literal["null", "absent", "list"] = "null"
    """The result for an empty list: null, no field, or the unchanged list. The default is null."""

    def losses(self) -> Iterator[Loss]:
        named = "the body" if self.field is None else f"'{self.field}'"
        if self.many == "first":
            yield self._cut(named)
        if self.empty == "absent":
            lost = f"where {named} is absent, it comes back as an empty list"
            yield Loss(not self.inverse, lost, overwrites=False)

    def body_change(self, context: BodyContext) -> Change | None:
        if self.empty == "absent" and (self.field is None or self.field.endswith(("[]", "*"))):
            context.complain("is of a field; write null or list", "empty")

        def change(scopes: tuple[Scope, ...], keys: Keys) -> Change:
            made = Wrap(scopes, keys, Several(self.many), Nothing(self.empty))
            return Inverse(made) if self.inverse else made

        if self.field is None:
            return Whole(change((), BODY))
        return context.value_change(self.field, change, "field")


class WrapConfig(_BodyListSection):
    """Wrap a value: the older version has a list, the newer one a single value."""

    keyword = "wrap"


class UnwrapConfig(_BodyListSection):
    """Unwrap a list: the older version has a single value, the newer one a list."""

    keyword = "unwrap"

    inverse = True


class _ParameterListSection(_ListSection, ParameterSection):
    """What `wrap` and `unwrap` of parameters have in common."""

    field: str
    """The parameter, which has the same name in both versions."""
    many: Literal["first", "refuse"] = "first"
    """The result for several values: the first one, or a refusal. The default is first."""

    def losses(self) -> Iterator[Loss]:
        if self.many == "first":
            yield self._cut(f"'{self.field}'")

    def parameter_change(self, context: ParameterContext) -> ParameterChange:
        change = FirstValue(context.name(self.field, "field"), self.many == "refuse")
        return Reversed(change) if self.inverse else change


class WrapParameterConfig(_ParameterListSection):
    """Let a parameter be repeated: the older version has several where the newer one has one."""

    keyword = "wrap"


class UnwrapParameterConfig(_ParameterListSection):
    """Take one of several: the older version has one value where the newer one repeats it."""

    keyword = "unwrap"

    inverse = True
