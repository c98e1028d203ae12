"""Join a list: the newer version has a list of texts, the older one a single text.

Its inverse splits the text.
"""

from dataclasses import dataclass
from functools import partial

from gateway.conversion.change import FieldChange
from gateway.conversion.conversion_error import ConversionError, ErrorPlace, is_within
from gateway.conversion.document import Document, JsonForm, JsonObject, change_value, refuse


@dataclass(frozen=True, slots=True)
class JoinList(FieldChange):
    """The newer version has a list of texts, the older one a single text with separators.

    The empty list is the empty text. A list with the separator in an element, or with the empty
    text alone, is refused, since it would not come back as it was. Null stays null, and an absent
    field stays absent, both ways.
    """

    separator: str

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Split the text."""
        change_value(fields, self.field, form, self._split)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Join the list."""
        change_value(fields, self.field, form, partial(self._join, form))

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        """Return the whole text, or the whole list."""
        return self.field if is_within(place, self.field) else place

    def _split(self, text: Document) -> Document:
        if not isinstance(text, str):
            refuse("a string", text)
        return split_text(text, self.separator)

    def _join(self, form: JsonForm, elements: Document) -> Document:
        if not isinstance(elements, list):
            refuse("an array", elements)
        texts: list[str] = []
        for index, element in enumerate(elements):
            text = form.open(element)
            if not isinstance(text, str):
                refuse("a string", text, index)
            if self.separator in text:
                reason = f"a string that has '{self.separator}' in it"
                raise ConversionError(reason, (index,))
            texts.append(text)
        if texts == [""]:
            reason = "an empty string alone, which would become an empty list"
            raise ConversionError(reason, (0,))
        text = self.separator.join(texts)
        if texts and text.split(self.separator) != texts:  # as ';;' between 'a;' and 'b'
            raise ConversionError(f"a part of '{self.separator}' is at an end of an element")
        return text


# As many as a body that arrives may have by default (`limits.elements`); a text of 16 MB would take
# a gigabyte as a list.
_MOST_PIECES = 1_000_000


def split_text(text: str, separator: str) -> list[str]:
    """Return the pieces of a text, none of an empty one; raises ConversionError for too many."""
    if text.count(separator) >= _MOST_PIECES:
        raise ConversionError(f"a string of more than {_MOST_PIECES} pieces")
    return text.split(separator) if text else []
