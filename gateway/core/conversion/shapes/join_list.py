"""Join a list: texts in a list in the newer version, one text in the older. Its inverse: split."""

from dataclasses import dataclass

from gateway.core.conversion.document import ConversionError, JsonForm, JsonObject, reach, refuse
from gateway.core.conversion.field_path import Keys, Scope, pointer


@dataclass(frozen=True, slots=True)
class JoinList:
    """The newer version has a list of texts where the older one has a text with separators.

    The empty list is the empty text. So that each comes back as it was, a list is refused that has
    an element with the separator in it, or the empty text alone. Null stays null, and an absent
    field stays absent, both ways.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    separator: str

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Split the text."""
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        text = form.open(holder[key])
        if text is None:
            return
        if not isinstance(text, str):
            refuse("a string", text, *self.field)
        holder[key] = text.split(self.separator) if text else []

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Join the list."""
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        found = form.open(holder[key])
        if found is None:
            return
        if not isinstance(found, list):
            refuse("an array", found, *self.field)
        texts: list[str] = []
        for index, element in enumerate(found):
            text = form.open(element)
            if not isinstance(text, str):
                refuse("a string", text, *self.field, index)
            if self.separator in text:
                at = pointer(*self.field, index)
                raise ConversionError(f"a string that has '{self.separator}' in it", at)
            texts.append(text)
        if texts == [""]:
            at = pointer(*self.field, 0)
            raise ConversionError("an empty string alone, which would become an empty list", at)
        holder[key] = self.separator.join(texts)

    def for_patch(self) -> "JoinList":
        """Return the same change: what a PATCH request leaves out has no list."""
        return self
