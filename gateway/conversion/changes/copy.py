"""`copy`: the older version repeats a field under another name."""

from collections.abc import Iterator
from functools import partial
from typing import Literal

from gateway.conversion.change import Change, DirectedChange
from gateway.conversion.changes.change_section import BodySection, BuildContext, Loss
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import (
    MISSING,
    JsonForm,
    JsonObject,
    get,
    holder_of,
    put,
    take,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.schema import Flat, SchemaImage, union

Winner = Literal["refuse", "field", "to"]


class Copy(BodySection):
    """Copy a field: the older version has the same value under a second name too."""

    keyword = "copy"

    field: str
    """The field, which has the same name in both versions."""
    to: str
    """The field of the older version that repeats the value."""
    unequal: Winner = "refuse"
    """The result for a document of the older version in which the two fields differ: a refusal, the
    value of `field`, or the value of `to`. The default is refuse."""

    def own_losses(self) -> Iterator[Loss]:
        lacking = (
            f"where only '{self.field}' or '{self.to}' is sent, the reverse direction has both"
        )
        yield Loss(True, lacking, overwrites=False)
        if self.unequal != "refuse":
            lost = self.to if self.unequal == "field" else self.field
            other = self.field if self.unequal == "field" else self.to
            yield Loss(True, f"'{lost}' is dropped where it differs from '{other}'", True)

    def compile_body(self, context: BuildContext) -> Change | None:
        paths = context.paths((self.field, ("field",)), (self.to, ("to",)))
        if paths is None or not context.apart((paths[0].keys, paths[1].keys)):
            return None
        return copy(paths[0].scopes, paths[0].keys, paths[1].keys, self.unequal)


def copy(scopes: tuple[Scope, ...], field: Keys, to: Keys, unequal: Winner = "refuse") -> Change:
    """Return the change of a field that the older version repeats at a second location.

    A downgrade writes the value to the second location, and refuses a document that already has a
    value there. An upgrade removes the second location. The field gets its value if the field is
    absent.
    """

    def up(fields: JsonObject, form: JsonForm) -> None:
        repeated = take(fields, to, form)
        if repeated is MISSING:
            return
        holder = holder_of(fields, field, form)
        if holder is not None and unequal != "to":
            known = form.close(holder[field[-1]])
            if unequal == "refuse" and form.parse(known) != form.parse(form.close(repeated)):
                reason = "differs from the field that it repeats; send equal values, or one of them"
                raise ConversionError(reason, to)
            return
        put(fields, field, repeated, form)

    def down(fields: JsonObject, form: JsonForm) -> None:
        holder = holder_of(fields, field, form)
        if holder is None:
            return
        if get(fields, to, form) is not MISSING:
            raise ConversionError("already exists", to, rival=field)
        put(fields, to, form.close(holder[field[-1]]), form)

    return Change(
        scopes,
        (field[:1], to[:1]),
        DirectedChange(up, partial(_joined, field, to)),
        DirectedChange(down, partial(_repeated, field, to)),
    )


def _joined(field: Keys, to: Keys, flat: Flat, image: SchemaImage) -> object:
    image.record_reads(field)
    rest, repeated, required = image.take(flat, to)
    if repeated is False:
        return flat
    known = image.take(rest, field, keep=True).value
    if known is not False:
        image.misfit("the two fields may differ")
    return image.put(rest, field, union((known, repeated)), required=required)


def _repeated(field: Keys, to: Keys, flat: Flat, image: SchemaImage) -> object:
    image.record_reads(field)
    rest, value, required = image.take(flat, field, keep=True)
    if image.may_have(rest, to):
        image.refusals.append(f"'{to[-1]}' may already exist")
    return image.put(rest, to, value, required=required)
