"""Omit null: null in the newer version is no field in the older one. Its inverse: `fill_null`."""

from dataclasses import dataclass

from gateway.core.conversion.conversion_error import ErrorPlace
from gateway.core.conversion.document import JsonForm, JsonObject, get, reach, take
from gateway.core.conversion.field_path import Keys, Scope, is_array


@dataclass(frozen=True, slots=True)
class OmitNull:
    """The newer version has null where the older one leaves the field out.

    Downwards, a field that is null is removed, and with it a container that this empties. Upwards,
    a field that is absent becomes null, if the object is there that it belongs to. Other values
    stay, and so does a null of the older version. A form has no null, and stays as it is.

    Attributes:
        in_patch: whether it is for a PATCH request, where it has no effect: null removes a field
            there, and one that is absent stays as it is (RFC 7396).
    """

    scopes: tuple[Scope, ...]
    field: Keys
    in_patch: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field, and the outermost container, which may go with it."""
        return (self.field[:1],)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Write null where the field is absent."""
        stays = self.in_patch or not form.typed
        holder = None if stays else reach(fields, self.field, form)
        if holder is not None:
            holder.setdefault(self.field[-1], None)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Remove the field where it is null."""
        if not self.in_patch and get(fields, self.field, form) is None:
            take(fields, self.field, form)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        """Return the same place."""
        return place

    def for_patch(self) -> "OmitNull":
        """Return the change without effect; the elements of an array are given as a whole."""
        in_patch = not any(map(is_array, self.scopes))
        return OmitNull(self.scopes, self.field, in_patch)
