"""Link: a URL that leads to the client's version for the client, and to the service's for it.

Which way a URL is mapped depends on the message and not on the direction: in an answer it is one of
the service, in a request one of the client. The form of the document maps it, by the request.
"""

from dataclasses import dataclass

from gateway.conversion.change import FieldChange
from gateway.conversion.document import JsonForm, JsonObject, reach, refuse


@dataclass(frozen=True, slots=True)
class Link(FieldChange):
    """The field is a URL in both versions, or null."""

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Map the URL."""
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
        """Map the URL."""
        self.up(fields, form)
