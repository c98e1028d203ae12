"""`rename`: a field, query parameter or header field that has another name in the older version."""

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
from gateway.conversion.document import MISSING, JsonForm, JsonObject, put, reach, take
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
    """What `rename` of a body and of parameters have in common."""

    field: str
    """The newer version's name of the field, query parameter or header field."""
    to: str
    """The older version's name of the field, query parameter or header field."""

    def own_losses(self) -> Iterator[Loss]:
        if "default" in self.model_fields_set:
            text = f"where '{self.to}' is absent, '{self.field}' is the default"
            yield Loss(True, text, overwrites=False)


class Rename(_RenameSection, BodySection):
    """Rename a field, parameter or header, or move a field, in the older version."""

    keyword = "rename"

    default: JsonValue = None
    """The JSON value if the older version's document has none; without it, none is added."""

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
    """Rename a query parameter or a header field in the older version."""

    keyword = "rename"

    default: str | None = None
    """The value if the older version's message has none; without it, none is added."""

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
    context.complain("is the name that it has already; remove the change", "to")


def rename(scopes: tuple[Scope, ...], newer: Keys, older: Keys) -> Change:
    """Return the change of a field that the newer version has at `newer`, the older one at `older`.

    The value moves as it is, null too; an absent field stays absent. The new key takes the place
    of the old one among the others, unless the field leaves or enters an object that is there in
    both versions. Objects on the way are made, and removed when they become empty. If there is a
    value at the new place already, the body is refused, since neither value may be lost.
    """
    common = len(_common(newer, older)) + 1
    change = Change(
        scopes, (newer[:common], older[:common]), _moving(older, newer), _moving(newer, older)
    )

    def lenient() -> Change:
        if len(newer) == len(older) == 1:
            return change  # there is nothing on the way, and so no copy is needed
        return keep_unfit(change, of_value=False, instead=_of_holders(scopes, newer, older))

    return replace(change, lenient=lenient)


def _of_holders(scopes: tuple[Scope, ...], newer: Keys, older: Keys) -> Change | None:
    """Return the rename of the objects that have a field, None where they have the same name.

    What is there in place of such an object comes to its place, so that the service names it.
    """
    newer, older = newer[:-1], older[:-1]
    if not newer or not older or newer == older:
        return None
    instead = _of_holders(scopes, newer, older)
    return keep_unfit(rename(scopes, newer, older), of_value=True, instead=instead)


def _moving(source: Keys, target: Keys) -> DirectedChange:
    shared = len(_common(source, target)) if len(source) > 1 and len(target) > 1 else 0

    def effect(flat: Flat, image: SchemaImage) -> object:
        def move(holder: Flat) -> object:
            rest, value, required = image.take(holder, source[shared:])
            if image.may_have(rest, target[shared:]):
                image.refusals.append(f"'{target[-1]}' may be there already")
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
        return
    if new in fields:
        holder = reach(fields, target, form, keeps=True)
        if holder is not None and target[-1] in holder:
            raise ConversionError("is there already", target, rival=source)
        put(fields, target, value, form)  # refuses a value on the way that is no object
        return
    for key in reversed(target[1:]):
        value = {key: value}
    stays = old in fields
    fields[new] = value
    if stays:
        return
    # The new key is the last one now. The keys that followed the old one move behind it, which
    # costs less than a new object.
    for name in names[names.index(old) + 1 :]:
        fields[name] = fields.pop(name)


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
            raise ConversionError("is there already", place, rival=rival)
        name = spelling.name(target)
        return [ParameterLine(new, name, line.value) if line.key == old else line for line in lines]

    return rename
