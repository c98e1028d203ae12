"""`link`: a URL that has to lead each client to its own version."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.conversion.change import Change, FieldChange
from gateway.conversion.changes.build_context import BodyContext
from gateway.conversion.changes.change_section import BodySection, Loss
from gateway.conversion.document import JsonForm, JsonObject, reach, refuse
from gateway.conversion.schema import Flat, SchemaImage, wide


@dataclass(frozen=True, slots=True)
class Link(FieldChange):
    """The field is a URL in both versions, or null."""

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        text = form.open(holder[key])
        if text is None:
            return
        if not isinstance(text, str):
            refuse("a string", text, *self.field)
        mapped = text if form.message is None else form.message.link(text)
        if mapped != text:
            holder[key] = mapped

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self.up(fields, form)

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if flat["type"] != "string":
            return image.refused(flat, f"expected a string, found {flat['type']}")
        return wide({key: flat[key] for key in ("type", "format") if key in flat})


class LinkConfig(BodySection):
    """Map a URL in a body like Location, so that it leads a client to its own version."""

    keyword = "link"

    field: str
    """The field that holds the URL, which has the same name in both versions."""

    @property
    def maps_links(self) -> bool:
        return True

    def losses(self) -> Iterable[Loss]:
        return ()

    def body_change(self, context: BodyContext) -> Change | None:
        return context.value_change(self.field, Link, "field")
