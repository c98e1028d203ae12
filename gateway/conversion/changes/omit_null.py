"""Omit null: null in the newer version is no field in the older one. Its inverse: `fill_null`.

Another value may stand for it, such as `[]`.
"""

from copy import copy
from dataclasses import dataclass, replace

from gateway.conversion.conversion_error import ErrorPlace
from gateway.conversion.document import (
    PLAIN,
    Document,
    JsonForm,
    JsonObject,
    Number,
    get,
    reach,
    take,
)
from gateway.conversion.field_path import Keys, Scope, is_array
from gateway.conversion.scalars import is_same_number


@dataclass(frozen=True, slots=True)
class OmitNull:
    """The newer version has null where the older one leaves the field out.

    Downwards, a field that is null is removed, and with it a container that this empties. Upwards,
    a field that is absent becomes null, if the object is there that it belongs to. Other values
    stay, and so does a null of the older version. A form has no null, and stays as it is.

    Attributes:
        value: what stands for no field in place of null: a scalar, an empty array or object.
        in_patch: whether it is for a PATCH request, where it has no effect: null removes a field
            there, and one that is absent stays as it is (RFC 7396).
    """

    scopes: tuple[Scope, ...]
    field: Keys
    value: Document = None
    in_patch: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field, and the outermost container, which may go with it."""
        return (self.field[:1],)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the value where the field is absent."""
        stays = self._stays(form) or not (form.typed or isinstance(self.value, str))
        holder = None if stays else reach(fields, self.field, form)
        if holder is not None:
            holder.setdefault(self.field[-1], copy(self.value))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Remove the field where it has the value."""
        if self._stays(form):
            return
        if _same(get(fields, self.field, form), PLAIN.open(self.value)):
            take(fields, self.field, form)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        """Return the same place."""
        return place

    def for_patch(self) -> "OmitNull":
        """Return the change without effect; the elements of an array are given as a whole."""
        return replace(self, in_patch=not any(map(is_array, self.scopes)))

    def _stays(self, form: JsonForm) -> bool:
        return self.in_patch or form.of_places


def _same(one: Document, other: Document) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return is_same_number(one.digits, other.digits)
    return type(one) is type(other) and one == other
