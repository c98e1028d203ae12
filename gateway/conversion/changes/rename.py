"""`rename`: a field, query parameter or header field has another name in the older version."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from pydantic import JsonValue

from gateway.conversion.change import (
    Change,
    DirectedChange,
    keep_unfit,
    sequence,
)
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.changes.default import add_parameter, default
from gateway.conversion.conversion_error import Beside, ConversionError, moved_back
from gateway.conversion.document import (
    MISSING,
    JsonForm,
    JsonObject,
    get,
    holder_of,
    is_id,
    kind,
    put,
    reach,
    take,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import (
    LineStep,
    MovedNames,
    ParameterChange,
    ParameterLine,
    ParameterLines,
    Spelling,
    parameter_sequence,
)
from gateway.conversion.schema import Flat, SchemaImage


class _RenameSection(ChangeSection):
    field: str
    """The name of the field, query parameter or header field in the newer version."""
    to: str
    """The name of the field, query parameter or header field in the older version."""

    def own_losses(self) -> Iterator[Loss]:
        if "default" in self.model_fields_set:
            text = f"where '{self.to}' is absent, '{self.field}' is the default"
            yield Loss(True, text, overwrites=False)


class Rename(_RenameSection, BodySection):
    """Rename a field, parameter or header for the older version, or move a field."""

    keyword = "rename"

    default: JsonValue = None
    """The JSON value to add if a document of the older version lacks the field; without it, nothing
    is added."""

    def compile_body(self, context: BuildContext) -> Change | None:
        paths = context.paths((self.field, ("field",)), (self.to, ("to",)))
        if paths is None:
            return None
        newer, older = paths
        if newer == older:
            _is_its_own(context)
            return None
        change = rename(newer.scopes, newer.keys, older.keys)
        if "default" not in self.model_fields_set:
            return change
        return sequence(change, default(newer.scopes, newer.keys, self.default, keep=True))


class RenameParameter(_RenameSection, ParameterSection):
    """Rename a query parameter or a header field for the older version."""

    keyword = "rename"

    default: str | None = None
    """The value to add if a message of the older version lacks the parameter or header; without it,
    nothing is added."""

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        newer, older = context.name(self.field, "field"), context.name(self.to, "to")
        if newer == older:
            _is_its_own(context)
        change = rename_parameter(newer, older)
        if self.default is None:
            return change
        return parameter_sequence(
            change, add_parameter(newer, context.text(self.default, "default"), keep=True)
        )


def _is_its_own(context: BuildContext) -> None:
    context.mistakes.add("is the same name; remove the change", "to")


def rename(scopes: tuple[Scope, ...], newer: Keys, older: Keys) -> Change:
    """Return the change of a field that the versions have at different locations.

    The value moves unchanged, even if it is null, and an absent field stays absent. The new key has
    the position of the old key among the keys of the object, unless the field moves into or out of
    an object that both versions have. Objects on the new path are created if absent, and objects on
    the old path are removed if they become empty. If the new location already has a value, the body
    is refused, because one of the two values would be lost.
    """
    common = len(_common(newer, older)) + 1
    change = Change(
        scopes, (newer[:common], older[:common]), _moving(older, newer), _moving(newer, older)
    )

    def lenient() -> Change:
        if len(newer) == len(older) == 1:
            return change  # the paths lead through no other object, so no copy is needed
        return keep_unfit(change, of_value=False, instead=_of_holders(scopes, newer, older))

    return replace(change, lenient=lenient)


def _of_holders(scopes: tuple[Scope, ...], newer: Keys, older: Keys) -> Change | None:
    """Return a rename of the objects on the paths to a field; None if their names do not differ.

    It moves an invalid value that a message has instead of such an object to the new location of
    the object. The service can then refuse the value there.
    """
    newer, older = newer[:-1], older[:-1]
    if not newer or not older or newer == older:
        return None
    instead = _of_holders(scopes, newer, older)
    return keep_unfit(rename(scopes, newer, older), of_value=True, instead=instead)


def _moving(source: Keys, target: Keys) -> DirectedChange:
    shared = len(_common(source, target)) if len(source) > 1 and len(target) > 1 else 0
    between_objects = min(len(source), len(target)) - shared > 1

    def effect(flat: Flat, image: SchemaImage) -> object:
        def move(holder: Flat) -> object:
            if between_objects and image.may_be_id(holder, source[shared:-1]):
                image.refusals.append(f"'{source[-2]}' may be an id")
            rest, value, required = image.take(holder, source[shared:])
            if image.may_have(rest, target[shared:]):
                image.refusals.append(f"'{target[-1]}' may already exist")
            return image.put(rest, target[shared:], value, required=required)

        return image.reach(flat, source[:shared], move)

    def step(fields: JsonObject, form: JsonForm) -> None:
        _move(fields, source, target, form)

    return DirectedChange(step, effect, partial(moved_back, target=target, source=source))


def _common(one: Keys, other: Keys) -> Keys:
    # The last key of a path is never shared: `a` and `a.b` share nothing.
    depth = 0
    while depth < min(len(one), len(other)) - 1 and one[depth] == other[depth]:
        depth += 1
    return one[:depth]


def _move(fields: JsonObject, source: Keys, target: Keys, form: JsonForm) -> None:
    if source[0] not in fields:
        return
    shared = _common(source, target) if len(source) > 1 and len(target) > 1 else ()
    if shared:
        inner = reach(fields, (*shared, ""), form)
        if inner is not None:
            try:
                _move(inner, source[len(shared) :], target[len(shared) :], form)
            except ConversionError as error:
                raise error.under(*shared) from None
        return
    old, new = source[0], target[0]
    names = list(fields)
    value = fields.pop(old) if len(source) == 1 else take(fields, source, form)
    if value is MISSING:
        if len(source) > 1 and len(target) > 1:
            _refuse_id(fields, source, form)
        return
    if new in fields:
        if holder_of(fields, target, form, keeps=True) is not None:
            raise ConversionError("already exists", target, rival=source)
        put(fields, target, value, form)  # refuses a value on the path that is not an object
        return
    for key in reversed(target[1:]):
        value = {key: value}
    stays = old in fields
    fields[new] = value
    if stays:
        return
    # The new key is now the last key. Move the keys that followed the old key behind the new key,
    # which is faster than to create a new object.
    for name in names[names.index(old) + 1 :]:
        fields[name] = fields.pop(name)


def _refuse_id(fields: JsonObject, source: Keys, form: JsonForm) -> None:
    for depth in range(1, len(source)):
        found = get(fields, source[:depth], form)
        if is_id(found):
            reason = f"expected an object, found {kind(found)}"
            raise ConversionError(reason, source[:depth], is_on_way=True)


def rename_parameter(newer: str, older: str) -> ParameterChange:
    return ParameterChange(
        (MovedNames((newer,), (older,)),), _renaming(older, newer), _renaming(newer, older)
    )


def _renaming(source: str, target: str) -> LineStep:
    def rename(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        old, new = spelling.key(source), spelling.key(target)
        keys = {line.key for line in lines}
        if old not in keys:
            return lines
        if new in keys and new != old:
            place, rival = (Beside(spelling.what, (each,)) for each in (target, source))
            raise ConversionError("already exists", place, rival=rival)
        name = spelling.name(target)
        return [ParameterLine(new, name, line.value) if line.key == old else line for line in lines]

    return rename
