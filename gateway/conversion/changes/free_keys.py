"""Free keys: the keys of a map are other texts in the two versions, such as EUR and cur_EUR."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.conversion.change import FieldChange
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import Document, JsonForm, JsonObject, change_value, refuse


@dataclass(frozen=True, slots=True)
class KeyWords:
    """Writes some keys as other words; all others stay.

    Attributes:
        words: The words of the other version, by those of this one.
        taken: The words of the other version, which would come back as those of this one.
    """

    words: Mapping[str, str]
    taken: frozenset[str]

    def __call__(self, key: str) -> str:
        """Return the key in the other version; raises ValueError for one that is taken there."""
        if key not in self.words and key in self.taken:
            raise ValueError("stands for another key in the other version")
        return self.words.get(key, key)


@dataclass(frozen=True, slots=True)
class FreeKeys(FieldChange):
    """The keys of the object in a field are written otherwise; their values and order stay.

    An absent field stays absent, and null stays null, both ways.

    Attributes:
        to_newer: Writes a key as the newer version does; raises ValueError.
        to_older: Writes a key as the older version does; raises ValueError.
    """

    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the keys as the newer version does."""
        self._rewrite(fields, form, self.to_newer)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the keys as the older version does."""
        self._rewrite(fields, form, self.to_older)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return the place with its key as the other version writes it."""
        depth = len(self.field)
        if isinstance(place, Beside) or place[:depth] != self.field or not place[depth:]:
            return place
        write = self.to_older if upwards else self.to_newer
        try:
            return (*self.field, write(str(place[depth])), *place[depth + 1 :])
        except ValueError:  # the other version cannot have such a key
            return self.field

    def _rewrite(self, fields: JsonObject, form: JsonForm, write: Callable[[str], str]) -> None:
        def changed(value: Document) -> Document:
            if not isinstance(value, dict):
                refuse("an object", value)
            made: JsonObject = {}
            for key, member in value.items():
                try:
                    name = write(key)
                except ValueError as error:
                    raise ConversionError(f"the key: {error}", (key,)) from None
                if name in made:
                    raise ConversionError(f"becomes '{name}', which is there already", (key,))
                made[name] = member
            return value if made == value else form.close(made)

        change_value(fields, self.field, form, changed)
