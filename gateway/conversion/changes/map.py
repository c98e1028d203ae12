"""Map: the two versions have different words for the same values.

An absent field stays absent, both ways.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import NamedTuple

from gateway.conversion.change import FieldChange
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import JsonForm, JsonObject, Number, kind, reach
from gateway.conversion.scalars import WORDS, Scalar, exact


class Unknown(Enum):
    """How a value is treated that the map does not name."""

    REFUSE = "refuse"
    KEEP = "keep"


Otherwise = Unknown | Scalar


class _Spellings(NamedTuple):
    """What finds words that are written otherwise than in the map, however many it has."""

    numbers: Mapping[Decimal | None, Scalar]
    """By the numbers among them."""
    texts: Mapping[str, Scalar]
    """By how each is written in a form."""


@dataclass(frozen=True, slots=True)
class Map(FieldChange):
    """The two versions have different words for the same things.

    Null stays null, unless the map names it.

    Attributes:
        older: what each value of the newer version is in the older one.
        newer: the way back.
        unknown: what a value becomes that is not in `older`, or how it is treated.
        unknown_back: the same for `newer`.
    """

    older: Mapping[Scalar, Scalar]
    newer: Mapping[Scalar, Scalar]
    unknown: Otherwise = Unknown.REFUSE
    unknown_back: Otherwise = Unknown.REFUSE
    _of_older: _Spellings = field(init=False, repr=False, compare=False)
    _of_newer: _Spellings = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Look at each word once."""
        object.__setattr__(self, "_of_older", _spellings(self.older))
        object.__setattr__(self, "_of_newer", _spellings(self.newer))

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Replace the word by the newer version's."""
        self._map(fields, form, self.newer, self._of_newer, self.unknown_back)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Replace the word by the older version's."""
        self._map(fields, form, self.older, self._of_older, self.unknown)

    def _map(
        self,
        fields: JsonObject,
        form: JsonForm,
        words: Mapping[Scalar, Scalar],
        spellings: _Spellings,
        unknown: Otherwise,
    ) -> None:
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        value = form.open(holder[key])
        if type(value) is str and type(known := words.get(value)) is str:
            holder[key] = known  # nearly always
            return
        word = unknown
        if value is None:
            word = None if form.of_places else words.get(None)
        elif isinstance(value, str | bool | Number):
            word = words.get(value, unknown)
            if word is unknown and isinstance(value, Number):
                word = spellings.numbers.get(exact(value.digits), unknown)
            elif word is unknown and not form.typed and isinstance(value, str):
                word = spellings.texts.get(value, unknown)
        if isinstance(word, Number):
            holder[key] = form.number(word.digits)
        elif not isinstance(word, Unknown):
            holder[key] = word
        elif word is Unknown.REFUSE:
            raise ConversionError(f"{kind(value)} that is not in the map", self.field)


def _spellings(words: Mapping[Scalar, Scalar]) -> _Spellings:
    numbers: dict[Decimal | None, Scalar] = {}
    texts: dict[str, Scalar] = {}
    for word, known in words.items():
        if isinstance(word, Number):
            numbers.setdefault(exact(word.digits), known)
            texts.setdefault(word.digits, known)
        elif isinstance(word, bool):
            texts.setdefault(WORDS[word], known)
        elif word is not None:
            texts.setdefault(word, known)
    numbers.pop(None, None)
    return _Spellings(numbers, texts)


def words(known: Mapping[str, str], unknown: str | None, keep: bool) -> Callable[[str], str]:
    """Return a function that replaces a word; the function raises ValueError.

    Args:
        known: what each word becomes.
        unknown: what every other becomes; None where there is no such word.
        keep: whether others stay as they are, else they are refused.
    """

    def convert(word: str) -> str:
        found = known.get(word, unknown)
        if found is not None:
            return found
        if keep:
            return word
        raise ValueError("not a value that the map has")

    return convert
