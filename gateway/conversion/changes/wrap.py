"""Wrap: a single value in the newer version, a list in the older one. Its inverse is `unwrap`.

An absent field stays absent, both ways, unless it stands for the empty list.
"""

from dataclasses import dataclass, replace
from enum import Enum

from gateway.conversion.change import FieldChange
from gateway.conversion.conversion_error import (
    Beside,
    ConversionError,
    ErrorPlace,
    moved_back,
)
from gateway.conversion.document import JsonForm, JsonObject, reach, refuse
from gateway.conversion.field_path import Keys, Tokens, is_array


class Several(Enum):
    """What a list of several elements is where there is a single value."""

    FIRST = "first"
    REFUSE = "refuse"
    KEEP = "keep"


class Nothing(Enum):
    """What an empty list is where there is a single value."""

    NULL = "null"
    ABSENT = "absent"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Wrap(FieldChange):
    """The older version has a list where the newer one has a single value.

    Downwards, the value becomes the only element, and what stands for nothing the empty list.
    Upwards, the only element becomes the value, and the empty list what stands for nothing. Null
    stays null, unless it stands for nothing.

    Attributes:
        many: What a list of several becomes: its first element, a refusal, or the list that it is.
            As a list, it comes back as it was; so an only element that is null or a list, which
            would not, is refused then.
        empty: What stands for nothing in the newer version.
    """

    many: Several = Several.FIRST
    empty: Nothing = Nothing.NULL

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Take the value out of the list."""
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        values = form.open(holder[key])
        if values is None:
            return
        if not isinstance(values, list):
            refuse("an array", values, *self.field)
        if len(values) > 1 and self.many is Several.REFUSE:
            raise ConversionError("an array of several elements", self.field)
        if len(values) > 1 and self.many is Several.KEEP:
            return
        if values:
            if self.many is Several.KEEP and isinstance(form.open(values[0]), list | None):
                reason = "is the only element, and would come back as all of the array"
                raise ConversionError(reason, (*self.field, 0))
            holder[key] = values[0]
        elif self.empty is Nothing.NULL:
            holder[key] = None
        elif self.empty is Nothing.ABSENT:
            del holder[key]

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Put the value into a list."""
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        if holder is None:
            return
        key = self.field[-1]
        if key not in holder:
            # A form has no empty list.
            if self.empty is Nothing.ABSENT and form.typed:
                holder[key] = []
            return
        value = form.open(holder[key])
        if value is None:
            if self.empty is Nothing.NULL and not form.of_places:
                holder[key] = []
        elif not isinstance(value, list):
            holder[key] = [holder[key]]
        elif self.many is not Several.KEEP and (value or self.empty is not Nothing.LIST):
            holder[key] = [holder[key]]

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return the first element of the list for the value, and the value for the element."""
        first: Tokens = (*self.field, 0)
        if self.many is Several.KEEP and _in_list(place, self.field):
            return place  # as it is in a list that stays, and the nearest in any other
        if upwards:
            return moved_back(place, self.field, first)
        return moved_back(place, first, self.field)

    def for_patch(self) -> "Wrap":
        """Return the change for a body in which null removes a field (RFC 7396).

        No field means no change there, so null stands for nothing.
        """
        if self.empty is not Nothing.ABSENT or any(map(is_array, self.scopes)):
            return self
        return replace(self, empty=Nothing.NULL)


def _in_list(place: ErrorPlace, field: Keys) -> bool:
    if isinstance(place, Beside) or place[: len(field)] != field:
        return False
    return isinstance(next(iter(place[len(field) :]), None), int)
