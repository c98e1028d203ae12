"""`default` and `remove`: a field, query parameter or header field that only one version has."""

from collections.abc import Callable, Iterable
from copy import deepcopy

from pydantic import JsonValue

from gateway.conversion.change import Change, DirectedChange, SchemaEffect, in_arrays
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    get,
    is_id,
    put,
    take,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterChange,
    ParameterLine,
    ParameterLines,
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


class _DefaultSection(ChangeSection):
    field: str
    """The name of the field, which only the newer version has."""
    keep: bool = False
    """Whether a downgrade keeps the field because the older version may have it too. The default is
    false."""

    def own_losses(self) -> Iterable[Loss]:
        if self.keep:
            text = f"where '{self.field}' is absent, it is the default"
            return (Loss(True, text, overwrites=False),)
        return (Loss(False, f"'{self.field}' is left out"),)


class _RemoveSection(ChangeSection):
    field: str
    """The name of the field, which only the older version has."""

    inverse = True

    def own_losses(self) -> Iterable[Loss]:
        return (Loss(False, f"'{self.field}' is left out"),)


class Default(_DefaultSection, BodySection):
    """Remove a field for the older version, which lacks it."""

    keyword = "default"

    value: JsonValue
    """The JSON value of the field in documents that are converted from the older version."""

    def compile_body(self, context: BuildContext) -> Change | None:
        path = context.path(self.field, "field")
        return path and default(path.scopes, path.keys, self.value, keep=self.keep)


class Remove(_RemoveSection, BodySection):
    """Add a field for the older version; the newer version lacks it."""

    keyword = "remove"

    value: JsonValue = None
    """The JSON value of the field in documents that are converted from the newer version; without
    it, the field is not added."""

    def compile_body(self, context: BuildContext) -> Change | None:
        path = context.path(self.field, "field")
        value = self.value if "value" in self.model_fields_set else MISSING
        return path and default(path.scopes, path.keys, value)


class DefaultParameter(_DefaultSection, ParameterSection):
    """Remove a parameter or header for the older version, which lacks it."""

    keyword = "default"

    value: str | None = None
    """The value to add if a message of the older version lacks the parameter or header; without it,
    nothing is added."""

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        return _added(self.field, self.value, context, keep=self.keep)


class RemoveParameter(_RemoveSection, ParameterSection):
    """Add a parameter or header for the older version; the newer version lacks it."""

    keyword = "remove"

    value: str | None = None
    """The value to add if a message of the newer version lacks the parameter or header; without it,
    nothing is added."""

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        return _added(self.field, self.value, context)


def _added(
    name: str, value: str | None, context: BuildContext, *, keep: bool = False
) -> ParameterChange:
    text = None if value is None else context.text(value, "value")
    return add_parameter(context.name(name, "field"), text, keep=keep)


def default(
    scopes: tuple[Scope, ...], field: Keys, value: Document, *, keep: bool = False
) -> Change:
    """Return the change of a field that only the newer version has.

    An upgrade adds the absent field with `value`, and creates absent objects on the path to it. It
    adds nothing if an object on the path is null, or if `value` is MISSING. A downgrade removes the
    field, and the objects on the path that become empty.

    No field is added to a PATCH request, which does not change the fields that it lacks. Objects in
    an array are an exception, because a PATCH request replaces an array as a whole (RFC 7396).
    """

    def up(fields: JsonObject, form: JsonForm) -> None:
        if value is MISSING or form.of_places or get(fields, field, form) is not MISSING:
            return
        if not is_blocked(fields, field, form):
            # Insert a copy, because a later change may alter the value.
            own = deepcopy(value) if isinstance(value, dict | list) else value
            put(fields, field, own, form)

    def down(fields: JsonObject, form: JsonForm) -> None:
        if not keep:
            take(fields, field, form)

    def removed(flat: Flat, image: SchemaImage) -> object:
        return flat if keep else image.take(flat, field).rest

    patch = None
    if value is not MISSING and not in_arrays(scopes):
        patch = default(scopes, field, MISSING, keep=keep)
    return Change(
        scopes,
        (field[:1],),
        DirectedChange(up, _added_effect(field, value, keep=keep), adds=field),
        DirectedChange(down, removed),
        patch=patch,
    )


def is_blocked(fields: JsonObject, field: Keys, form: JsonForm) -> bool:
    """Return whether null or an id is in the place of an object on the path to a field."""
    if field[0] not in fields:
        return False
    on_way = (get(fields, field[:depth], form) for depth in range(1, len(field)))
    return any(value is None or is_id(value) for value in on_way)


def _added_effect(field: Keys, value: Document, *, keep: bool) -> SchemaEffect:
    def effect(flat: Flat, image: SchemaImage) -> object:
        if value is MISSING:
            return flat
        if keep:
            image.record_reads(field)
        image.record_write(field, True if keep else {"type": type_of(value)})
        return filled(flat, field, listed([value]), image)

    return effect


def filled(
    flat: Flat,
    keys: Keys,
    fresh: object,
    image: SchemaImage,
    changed: Callable[[object], object] = lambda schema: schema,
) -> object:
    """Return the schema of an object after an absent field is added, with objects on the path.

    Args:
        fresh: The schema of the added value.
        changed: Returns the new schema of a field that exists.
    """
    key, *inner = keys
    before, always = field_of(flat, key), requires(flat, key)
    if inner:
        rest, fresh_value = tuple(inner), fresh
        fresh = filled(an_object({}), rest, fresh_value, image, changed)

        def inside(one: Flat) -> object:
            if one["type"] in ("null", "string", "integer", "number"):
                return one
            if one["type"] == "object":
                return filled(one, rest, fresh_value, image, changed)
            image.refusals.append("expected an object on the way")
            return False

        before = image.each(before, inside)
    else:
        before = changed(before)
    return with_field(flat, key, before if always else union((before, fresh)), required=True)


def add_parameter(name: str, value: str | None, *, keep: bool = False) -> ParameterChange:
    """Return the change of a parameter that only the newer version has.

    If `value` is None, an upgrade adds nothing.
    """

    def up(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key = spelling.key(name)
        if value is None or any(line.key == key for line in lines):
            return lines
        return [*lines, ParameterLine(key, spelling.name(name), spelling.write(value))]

    def down(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        if keep:
            return lines
        key = spelling.key(name)
        return [line for line in lines if line.key != key]

    return ParameterChange((MovedNames((name,), (name,) if keep else ()),), up, down)
