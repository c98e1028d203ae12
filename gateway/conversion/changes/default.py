"""`default` and `remove`: a field, query parameter or header field that one version alone has."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace

from pydantic import JsonValue

from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.conversion_error import ErrorPlace
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    get,
    put,
    take,
)
from gateway.conversion.field_path import Keys, Scope, is_array
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterChange,
    ParameterLine,
    ParameterLines,
    Reversed,
    Spelling,
)
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_object,
    field_of,
    listed,
    requires,
    type_of,
    union,
    with_field,
)


@dataclass(frozen=True, slots=True)
class Default:
    """Only the newer version has the field.

    Upwards, it is added with `value` where it is absent, in containers that are made if need be;
    where a container is null, it stays so. Downwards, the field is removed, and with it a
    container that this empties. Without a value (MISSING), nothing is added. Where the older
    version may have the field as well, it is kept.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    value: Document
    keep: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        return (self.field[:1],)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        if self.value is MISSING or form.of_places:
            return
        if self.field[0] in fields:
            if get(fields, self.field, form) is not MISSING:
                return
            for depth in range(1, len(self.field)):
                if get(fields, self.field[:depth], form) is None:
                    return
        # Each gets its own, since a later change may look into it and alter it.
        own = deepcopy(self.value) if isinstance(self.value, dict | list) else self.value
        put(fields, self.field, own, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        if not self.keep:
            take(fields, self.field, form)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if not upwards:
            return flat if self.keep else image.take(flat, self.field).rest
        if self.value is MISSING:
            return flat
        if self.keep:
            image.looks(self.field)
        image.makes(self.field, True if self.keep else {"type": type_of(self.value)})
        return self._filled(flat, self.field, image)

    def _filled(self, flat: Flat, keys: Keys, image: SchemaImage) -> object:
        key, *inner = keys
        before, always = field_of(flat, key), requires(flat, key)
        fresh: object = listed([self.value])
        if inner:
            fresh = self._filled(an_object({}), tuple(inner), image)

            def filled(one: Flat) -> object:
                if one["type"] == "null":
                    return one
                if one["type"] == "object":
                    return self._filled(one, tuple(inner), image)
                image.refusals.append("expected an object on the way")
                return False

            before = image.each(before, filled)
        return with_field(flat, key, before if always else union((before, fresh)), required=True)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        return place

    def for_patch(self) -> "Default":
        """Return the change without its value: what a PATCH request leaves out is not filled in.

        Arrays are given as a whole (RFC 7396), so a field that their elements lack is lacking.
        """
        return self if any(map(is_array, self.scopes)) else replace(self, value=MISSING)


@dataclass(frozen=True, slots=True)
class Added:
    """Only the newer version has it; upwards, `value` is added where it is absent, unless None.

    Where the older version may have it as well, it is kept.
    """

    name: str
    value: str | None
    keep: bool = False

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return (MovedNames((self.name,), (self.name,) if self.keep else ()),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key = spelling.key(self.name)
        if self.value is None or any(line.key == key for line in lines):
            return lines
        return [*lines, ParameterLine(key, spelling.name(self.name), spelling.write(self.value))]

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        if self.keep:
            return lines
        key = spelling.key(self.name)
        return [line for line in lines if line.key != key]


class _DefaultSection(ChangeSection):
    """What `default` of a body and of parameters have in common."""

    field: str
    """The newer version's name of the field that the older version lacks."""
    keep: bool = False
    """Whether the older version may also have the field, so that it stays. The default is false."""

    def losses(self) -> Iterable[Loss]:
        if self.keep:
            return (
                Loss(True, f"where '{self.field}' is absent, it is the default", overwrites=False),
            )
        return (Loss(False, f"'{self.field}' is left out"),)


class _RemoveSection(ChangeSection):
    """What `remove` of a body and of parameters have in common."""

    field: str
    """The older version's name of the field that the newer version lacks."""

    def losses(self) -> Iterable[Loss]:
        return (Loss(True, f"'{self.field}' is left out"),)


class DefaultParameterConfig(_DefaultSection, ParameterSection):
    """Leave out, for the older version, a parameter or header that only the newer version has."""

    keyword = "default"

    value: str | None = None
    """The value if the older version's message has none; without it, none is added."""

    def parameter_change(self, context: ParameterContext) -> ParameterChange:
        return _added(self.field, self.value, context, keep=self.keep)


class RemoveParameterConfig(_RemoveSection, ParameterSection):
    """Add, for the older version, a parameter or header that only the older version has."""

    keyword = "remove"

    value: str | None = None
    """The value if the newer version's message has none; without it, none is added."""

    def parameter_change(self, context: ParameterContext) -> ParameterChange:
        return Reversed(_added(self.field, self.value, context))


class DefaultConfig(_DefaultSection, BodySection):
    """Leave out, for the older version, a field that only the newer version has."""

    keyword = "default"

    value: JsonValue
    """The JSON value of the field in documents that come from the older version."""

    def body_change(self, context: BodyContext) -> Change | None:
        path = context.path(self.field, "field")
        return None if path is None else Default(path.scopes, path.keys, self.value, self.keep)


class RemoveConfig(_RemoveSection, BodySection):
    """Add, for the older version, a field that only the older version has."""

    keyword = "remove"

    value: JsonValue = None
    """The JSON value of the field in documents of the newer version; without it, none is added."""

    def body_change(self, context: BodyContext) -> Change | None:
        path = context.path(self.field, "field")
        value = self.value if "value" in self.model_fields_set else MISSING
        return None if path is None else Inverse(Default(path.scopes, path.keys, value))


def _added(name: str, value: str | None, context: ParameterContext, *, keep: bool = False) -> Added:
    text = None if value is None else context.text(value, "value")
    return Added(context.name(name, "field"), text, keep)
