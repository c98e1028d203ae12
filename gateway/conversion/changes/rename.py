"""`rename`: a field, query parameter or header field that has another name in the older version."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from gateway.conversion.change import Change, ChangeSequence
from gateway.conversion.changes.build_context import BodyContext, BuildContext, ParameterContext
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.changes.default import Added, Default
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace, moved_back
from gateway.conversion.document import MISSING, JsonForm, JsonObject, put, reach, take
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterChange,
    ParameterLine,
    ParameterLines,
    ParameterSequence,
    Spelling,
)
from gateway.conversion.schema import Flat, SchemaImage


@dataclass(frozen=True, slots=True)
class Rename:
    """The newer version has a field as `newer`, the older one has it as `older`.

    The value moves as it is, null too; an absent field stays absent. The new key takes the place
    of the old one among the others, unless the field leaves or enters an object that is there in
    both versions. Objects on the way are made, and removed when they become empty. If there is a
    value at the new place already, the body is refused, since neither value may be lost.
    """

    scopes: tuple[Scope, ...]
    newer: Keys
    older: Keys

    @property
    def touches(self) -> tuple[Keys, ...]:
        common = len(_common(self.newer, self.older)) + 1
        return (self.newer[:common], self.older[:common])

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        _move(fields, self.older, self.newer, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        _move(fields, self.newer, self.older, form)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        source, target = (self.older, self.newer) if upwards else (self.newer, self.older)
        shared = len(_common(source, target)) if len(source) > 1 and len(target) > 1 else 0

        def move(holder: Flat) -> object:
            rest, value, required = image.take(holder, source[shared:])
            if image.may_have(rest, target[shared:]):
                image.refusals.append(f"'{target[-1]}' may be there already")
            return image.put(rest, target[shared:], value, required=required)

        return image.reach(flat, source[:shared], move)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        source, target = (self.older, self.newer) if upwards else (self.newer, self.older)
        return moved_back(place, target, source)

    def for_patch(self) -> "Rename":
        return self


@dataclass(frozen=True, slots=True)
class Renamed:
    """What is called `newer` in the newer version is called `older` in the older one."""

    newer: str
    older: str

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return (MovedNames((self.newer,), (self.older,)),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return self._rename(lines, spelling, self.older, self.newer)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return self._rename(lines, spelling, self.newer, self.older)

    def _rename(
        self, lines: ParameterLines, spelling: Spelling, source: str, target: str
    ) -> ParameterLines:
        old, new = spelling.key(source), spelling.key(target)
        keys = {line.key for line in lines}
        if old not in keys:
            return lines
        if new in keys and new != old:
            place, rival = (Beside(spelling.what, (each,)) for each in (target, source))
            raise ConversionError("is there already", place, rival=rival)
        name = spelling.name(target)
        return [ParameterLine(new, name, line.value) if line.key == old else line for line in lines]


def _common(one: Keys, other: Keys) -> Keys:
    # Neither may end in what they share: `a` and `a.b` share nothing.
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
        put(fields, target, value, form)  # which refuses what is no object on the way
        return
    for key in reversed(target[1:]):
        value = {key: value}
    stays = old in fields
    fields[new] = value
    if stays:
        return
    # It stands last now; what stood behind the old one goes behind it, which costs less than to
    # make the object anew.
    for name in names[names.index(old) + 1 :]:
        fields[name] = fields.pop(name)


class RenameSection(ChangeSection):
    """What `rename` of a body and of parameters have in common."""

    field: str
    """The newer version's name of the field, query parameter or header field."""
    to: str
    """The older version's name of the field, query parameter or header field."""

    def losses(self) -> Iterator[Loss]:
        if "default" in self.model_fields_set:
            text = f"where '{self.to}' is absent, '{self.field}' is the default"
            yield Loss(True, text, overwrites=False)


class RenameParameterConfig(RenameSection, ParameterSection):
    """Rename a query parameter or a header field in the older version."""

    keyword = "rename"

    default: str | None = None
    """The value if the older version's message has none; without it, none is added."""

    def parameter_change(self, context: ParameterContext) -> ParameterChange:
        newer, older = context.name(self.field, "field"), context.name(self.to, "to")
        if newer == older:
            _is_its_own(context)
        change = Renamed(newer, older)
        if self.default is None:
            return change
        return ParameterSequence(
            (change, Added(newer, context.text(self.default, "default"), keep=True))
        )


class RenameConfig(RenameSection, BodySection):
    """Rename a field, parameter or header, or move a field, in the older version."""

    keyword = "rename"

    default: JsonValue = None
    """The JSON value if the older version's document has none; without it, none is added."""

    def body_change(self, context: BodyContext) -> Change | None:
        paths = context.paths((self.field, ("field",)), (self.to, ("to",)))
        if paths is None:
            return None
        newer, older = paths
        if newer == older:
            _is_its_own(context)
            return None
        change = Rename(newer.scopes, newer.keys, older.keys)
        if "default" not in self.model_fields_set:
            return change
        added = Default(newer.scopes, newer.keys, self.default, keep=True)
        return ChangeSequence((change, added))


def _is_its_own(context: BuildContext) -> None:
    context.complain("is the name that it has already; remove the change", "to")
