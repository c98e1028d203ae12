"""`invert`: a boolean with the opposite meaning in the older version (`active`, `archived`)."""

from gateway.conversion.change import Change, rewrite_scalars, sequence, value_change
from gateway.conversion.changes.change_section import BodySection, BuildContext, ParameterSection
from gateway.conversion.changes.rename import rename, rename_parameter
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import ParameterChange, parameter_sequence, rewritten
from gateway.conversion.scalars import Type
from gateway.conversion.schema import Flat, SchemaImage


class Invert(BodySection, ParameterSection):
    """Invert a boolean: true in the newer version is false in the older one."""

    keyword = "invert"

    field: str
    """The newer version's name of the field, query parameter or header field."""
    to: str | None = None
    """The older version's name; the default is the same name."""

    def compile_body(self, context: BuildContext) -> Change | None:
        if self.to is None or self.to == self.field:
            return context.value_change(self.field, invert, "field")
        paths = context.paths((self.field, ("field",)), (self.to, ("to",)))
        if paths is None:
            return None
        newer, older = paths
        move = rename(newer.scopes, newer.keys, older.keys)
        return sequence(move, invert(newer.scopes, newer.keys))

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        newer = context.name(self.field, "field")
        change = rewritten(newer, _inverted, _inverted)
        if self.to is None or self.to == self.field:
            return change
        return parameter_sequence(rename_parameter(newer, context.name(self.to, "to")), change)


def invert(scopes: tuple[Scope, ...], field: Keys) -> Change:
    rewrite = rewrite_scalars(Type.BOOLEAN, Type.BOOLEAN, _is_false, _effect)
    return value_change(scopes, field, rewrite, rewrite)


def _effect(flat: Flat, image: SchemaImage) -> object:
    return image.refused(flat, f"expected a boolean, found {flat['type']}")


def _inverted(text: str) -> str:
    if text not in ("true", "false"):
        raise ValueError("expected true or false, found something else")
    return "true" if _is_false(text) else "false"


def _is_false(text: str) -> bool:
    return text == "false"
