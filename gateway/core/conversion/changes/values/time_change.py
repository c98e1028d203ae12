"""Time: the same moment, written in another form: unix time, RFC 3339, or a pattern.

An absent field stays absent, and null stays null, both ways.
"""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.conversion.change import FieldChange
from gateway.core.conversion.changes.values.moment import MomentForm
from gateway.core.conversion.document import JsonForm, JsonObject
from gateway.core.conversion.scalars import replace_scalar


@dataclass(frozen=True, slots=True)
class Time(FieldChange):
    """The two versions write the same moment in different forms."""

    newer: MomentForm
    older: MomentForm

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the newer version does."""
        older, newer = self.older, self.newer
        replace_scalar(fields, self.field, form, older.type, newer.type, rewriting(older, newer))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the older version does."""
        older, newer = self.older, self.newer
        replace_scalar(fields, self.field, form, newer.type, older.type, rewriting(newer, older))


def rewriting(source: MomentForm, target: MomentForm) -> Callable[[str], str]:
    """Return what writes the text of one form as that of another; it raises ValueError."""
    return lambda text: target.write(source.read(text))
