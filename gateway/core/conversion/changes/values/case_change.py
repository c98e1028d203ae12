"""Case: the same word in another case, such as inTransit for IN_TRANSIT.

An absent field stays absent, and null stays null, both ways.
"""

from dataclasses import dataclass

from gateway.core.conversion.changes.values.word_case import CaseRewriting
from gateway.core.conversion.document import JsonForm, JsonObject
from gateway.core.conversion.field_path import Keys, Scope
from gateway.core.conversion.scalars import Type, replace_scalar


@dataclass(frozen=True, slots=True)
class Case:
    """The two versions write the same word in different cases."""

    scopes: tuple[Scope, ...]
    field: Keys
    to_newer: CaseRewriting
    to_older: CaseRewriting

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the newer version does."""
        replace_scalar(fields, self.field, form, Type.TEXT, Type.TEXT, self.to_newer)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the older version does."""
        replace_scalar(fields, self.field, form, Type.TEXT, Type.TEXT, self.to_older)

    def for_patch(self) -> "Case":
        """Return the same change: what a PATCH request leaves out has no case."""
        return self
