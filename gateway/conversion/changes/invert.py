"""`invert`: a boolean that is the opposite in the older version, as `archived` of `active`."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.conversion.change import Change, ChangeSequence, FieldChange
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.change_section import BodySection, Loss, ParameterSection
from gateway.conversion.changes.rename import Rename, Renamed
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.parameter_change import (
    ParameterChange,
    ParameterSequence,
    Rewritten,
)
from gateway.conversion.scalars import Type, replace_scalar
from gateway.conversion.schema import Flat, SchemaImage


@dataclass(frozen=True, slots=True)
class Invert(FieldChange):
    """The older version has the opposite of a boolean."""

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(fields, self.field, form, Type.BOOLEAN, Type.BOOLEAN, _is_false)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self.up(fields, form)

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        return image.refused(flat, f"expected a boolean, found {flat['type']}")


def inverted(text: str) -> str:
    """Return false for true, and true for false; raises ValueError for another text."""
    if text not in ("true", "false"):
        raise ValueError("expected true or false, found something else")
    return "true" if _is_false(text) else "false"


def _is_false(text: str) -> bool:
    return text == "false"


class InvertConfig(BodySection, ParameterSection):
    """Invert a boolean: true in the newer version is false in the older one."""

    keyword = "invert"

    field: str
    """The newer version's name of the field, query parameter or header field."""
    to: str | None = None
    """The older version's name; the default is the same name."""

    def losses(self) -> Iterable[Loss]:
        return ()

    def body_change(self, context: BodyContext) -> Change | None:
        if self.to is None or self.to == self.field:
            return context.value_change(self.field, Invert, "field")
        paths = context.paths((self.field, ("field",)), (self.to, ("to",)))
        if paths is None:
            return None
        newer, older = paths
        move = Rename(newer.scopes, newer.keys, older.keys)
        return ChangeSequence((move, Invert(newer.scopes, newer.keys)))

    def parameter_change(self, context: ParameterContext) -> ParameterChange:
        newer = context.name(self.field, "field")
        change = Rewritten(newer, inverted, inverted)
        if self.to is None or self.to == self.field:
            return change
        return ParameterSequence((Renamed(newer, context.name(self.to, "to")), change))
