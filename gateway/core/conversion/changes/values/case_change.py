"""Case: the same word in another case, such as inTransit for IN_TRANSIT.

An absent field stays absent, and null stays null, both ways.
"""

from dataclasses import dataclass

from gateway.core.conversion.change import FieldChange
from gateway.core.conversion.changes.values.word_case import CaseRewriting
from gateway.core.conversion.document import JsonForm, JsonObject
from gateway.core.conversion.scalars import Type, replace_scalar


@dataclass(frozen=True, slots=True)
class Case(FieldChange):
    """The two versions write the same word in different cases."""

    to_newer: CaseRewriting
    to_older: CaseRewriting

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the newer version does."""
        replace_scalar(fields, self.field, form, Type.TEXT, Type.TEXT, self.to_newer)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the older version does."""
        replace_scalar(fields, self.field, form, Type.TEXT, Type.TEXT, self.to_older)
