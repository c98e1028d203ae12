"""Join pairs: the newer version has an object, the older one a text of keys and values.

Its inverse splits the text.
"""

from dataclasses import dataclass
from functools import partial

from gateway.conversion.change import FieldChange
from gateway.conversion.changes.join_list import split_text
from gateway.conversion.conversion_error import ConversionError, ErrorPlace, is_within
from gateway.conversion.document import Document, JsonForm, JsonObject, change_value, refuse


@dataclass(frozen=True, slots=True)
class JoinPairs(FieldChange):
    """The newer version has an object of texts, the older one a text such as `color=red;size=5`.

    The empty object is the empty text. What would not come back as it was is refused. Null stays
    null, and an absent field stays absent, both ways.

    Attributes:
        separator: What stands between two pairs.
        equals: What stands between the key and the value of a pair, at its first occurrence.
    """

    separator: str
    equals: str

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Split the text."""
        change_value(fields, self.field, form, partial(self._split, form))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Join the members of the object."""
        change_value(fields, self.field, form, partial(self._join, form))

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        """Return the whole text, or the whole object."""
        return self.field if is_within(place, self.field) else place

    def _split(self, form: JsonForm, text: Document) -> Document:
        if not isinstance(text, str):
            refuse("a string", text)
        members: JsonObject = {}
        for pair in split_text(text, self.separator):
            key, equals, value = pair.partition(self.equals)
            if not equals:
                raise ConversionError(f"a part of the string has no '{self.equals}'")
            if key in members:
                raise ConversionError("a key stands in the string twice")
            members[key] = value
        return form.close(members)

    def _join(self, form: JsonForm, members: Document) -> Document:
        if not isinstance(members, dict):
            refuse("an object", members)
        pairs: list[str] = []
        for key, sealed in members.items():
            value = form.open(sealed)
            if not isinstance(value, str):
                refuse("a string", value, key)
            pair = f"{key}{self.equals}{value}"
            # Also where a separator is made of what stands side by side, as in '==' and '='.
            if pair.split(self.separator) != [pair] or pair.partition(self.equals)[0] != key:
                reason = f"has '{self.separator}' in it, or '{self.equals}' in the key"
                raise ConversionError(reason, (key,))
            pairs.append(pair)
        text = self.separator.join(pairs)
        if text.split(self.separator) != (pairs or [""]):
            raise ConversionError(f"a part of '{self.separator}' is at an end of a key or value")
        return text
