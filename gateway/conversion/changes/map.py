"""`map`: the older version has other words for the same values."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from gateway.base.model import OneOrSome, SectionModel
from gateway.conversion.change import Change, ValueRewrite, value_change
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    Loss,
    ParameterSection,
)
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, JsonForm, JsonObject, Number, kind, reach
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import ParameterChange, rewritten
from gateway.conversion.scalars import WORDS, Scalar, exact, spelt
from gateway.conversion.schema import Flat, SchemaImage, listed, union
from gateway.conversion.steps import ConversionStep

# The maximum number of values that a refusal lists.
_LISTED = 10
# A value that the user has to write. `init` writes it for values without a counterpart.
PLACEHOLDER = "TODO"


class Unknown(Enum):
    """The treatment of a value that is not in the map."""

    REFUSE = "refuse"
    KEEP = "keep"


Otherwise = Unknown | Scalar


def _word(value: JsonValue) -> JsonValue:
    if isinstance(value, dict | list | tuple):
        raise ValueError("expected a string, a number, true, false or null")
    return value


MapWord = Annotated[JsonValue, AfterValidator(_word)]


class MapPair(SectionModel):
    """Two values with the same meaning, one of each version."""

    newer: MapWord
    """The value in the newer version: a string, a number, true, false or null."""
    older: MapWord
    """The value in the older version: a string, a number, true, false or null."""


Words = Annotated[dict[str, MapWord], Field(min_length=1)]


class MapDefault(SectionModel):
    """The word of each version that replaces every value that is not in the map."""

    older: MapWord = None
    """The word of the older version for every other value; without it, `unknown` decides."""
    newer: MapWord = None
    """The word of the newer version for every other value; without it, `unknown` decides."""


class Map(BodySection, ParameterSection):
    """Replace words: the older version has other words for the same values."""

    keyword = "map"

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    values: OneOrSome[Words, MapPair]
    """The older version's word for each word of the newer version, or a list of `newer` and `older`
    pairs."""
    back: OneOrSome[Words, MapPair] | None = None
    """The newer version's word for a word of the older version that `values` contains twice or not
    at all, such as `{ open: OPEN }` for the older word open."""
    unknown: Literal["refuse", "keep"] = "refuse"
    """Whether other values are refused or kept. The default is refuse."""
    default: MapDefault | None = None
    """The words that replace every other value; without them, `unknown` decides."""

    def own_losses(self) -> Iterator[Loss]:
        older = dict(self._pairs)
        newer = {known: word for word, known in older.items()}
        newer |= {known: word for word, known in self._pairs_back}
        for is_newer, known_words in ((False, older), (True, newer)):
            folded: dict[Scalar, list[str]] = {}
            for word, known in known_words.items():
                folded.setdefault(known, []).append(spelt(word))
            for known, several in folded.items():
                if len(several) > 1:
                    text = f"'{self.field}' is {spelt(known)} for {' and '.join(several)}"
                    yield Loss(is_newer, text, True)
        for key in ("older", "newer"):
            if key in self._otherwise:
                known = spelt(self._otherwise[key])
                yield Loss(key == "newer", f"'{self.field}' is {known} for every other value", True)

    def filter_losses(self) -> Iterator[Loss]:
        back = {known: word for word, known in self._pairs} | {
            known: word for word, known in self._pairs_back
        }
        for known, word in back.items():
            others = [spelt(one) for one, same in self._pairs if same == known and one != word]
            if others:
                text = f"'{self.field}' {spelt(known)} becomes {spelt(word)}"
                yield Loss(True, f"{text}, so a filter by it does not find {' and '.join(others)}")

    def compile_body(self, context: BuildContext) -> Change | None:
        older, newer = dict(self._pairs), self._values_to_newer(context)
        others = [self._otherwise.get(key, Unknown(self.unknown)) for key in ("older", "newer")]
        return context.value_change(
            self.field, lambda scopes, keys: map_words(scopes, keys, older, newer, *others), "field"
        )

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        to_older = {spelt(word): spelt(known) for word, known in self._pairs}
        to_newer = {
            spelt(word): spelt(known) for word, known in self._values_to_newer(context).items()
        }
        for text in (*to_older.values(), *to_newer.values()):
            context.text(text, "values")
        keep = self.unknown == "keep"
        others = {key: spelt(word) for key, word in self._otherwise.items()}
        return rewritten(
            context.name(self.field, "field"),
            _replacing(to_newer, others.get("newer"), keep=keep),
            _replacing(to_older, others.get("older"), keep=keep),
        )

    @property
    def _pairs(self) -> list[tuple[Scalar, Scalar]]:
        """The pairs in `values`: the newer version's word, then the older version's word."""
        if isinstance(self.values, dict):
            return [(newer, as_scalar(older)) for newer, older in self.values.items()]
        return [(as_scalar(pair.newer), as_scalar(pair.older)) for pair in self.values]

    @property
    def _pairs_back(self) -> list[tuple[Scalar, Scalar]]:
        if not isinstance(self.back, dict):
            return [(as_scalar(pair.newer), as_scalar(pair.older)) for pair in self.back or ()]
        # Keys in YAML are strings, even for words that are numbers or booleans in documents.
        known = {spelt(older): older for _, older in self._pairs}
        return [(as_scalar(newer), known.get(older, older)) for older, newer in self.back.items()]

    @property
    def _otherwise(self) -> dict[str, Scalar]:
        named = () if self.default is None else sorted(self.default.model_fields_set)
        return {key: as_scalar(getattr(self.default, key)) for key in named}

    def _values_to_newer(self, context: BuildContext) -> dict[Scalar, Scalar]:
        """Return the newer version's word for each word of the older version; record mistakes."""
        back: dict[Scalar, list[Scalar]] = {}
        seen: set[Scalar] = set()
        for index, (newer, older) in enumerate(self._pairs):
            back.setdefault(older, []).append(newer)
            if newer in seen:
                context.mistakes.add("occurs twice; remove one of them", "values", index, "newer")
            seen.add(newer)
        found = {word: names[0] for word, names in back.items() if len(names) == 1}
        found |= {older: newer for newer, older in self._pairs_back}
        for word, names in back.items():
            if word not in found:
                same = f"{' and '.join(map(spelt, names))} become the same value"
                back_key = f"back: {{ {spelt(word)}: {spelt(names[0])} }}"
                remedy = f"choose the value for the reverse direction: {back_key}"
                if word == PLACEHOLDER:
                    remedy = f"write the older version's value of each in place of {PLACEHOLDER}"
                context.mistakes.add(f"{same}; {remedy}", "values")
        return found


def as_scalar(word: JsonValue) -> Scalar:
    if word is None or isinstance(word, str | bool):
        return word
    return Number(str(word))


def map_words(
    scopes: tuple[Scope, ...],
    field: Keys,
    older: Mapping[Scalar, Scalar],
    newer: Mapping[Scalar, Scalar],
    unknown: Otherwise = Unknown.REFUSE,
    unknown_back: Otherwise = Unknown.REFUSE,
) -> Change:
    """Return the change of a value that has different words in the two versions.

    Null stays null, unless it is in the map.
    """
    up, down = _mapping(newer, unknown_back), _mapping(older, unknown)
    return value_change(scopes, field, up, down, nulls=True)


def _mapping(words: Mapping[Scalar, Scalar], unknown: Otherwise) -> ValueRewrite:
    def effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] == "null":
            return listed([_value(words[None])]) if None in words else flat
        if flat["type"] in ("object", "array"):
            if unknown is Unknown.KEEP:
                return flat
            # A map with a default converts every scalar, which is what such a field has.
            refused = () if unknown is Unknown.REFUSE else None
            return image.refused(flat, f"{flat['type']} values are not in the map", False, refused)
        known = [_value(word) for word in words.values()]
        if unknown is Unknown.KEEP:
            return union((listed(known), flat))
        if unknown is Unknown.REFUSE:
            named = ", ".join(spelt(word) for word in words if word is not None)
            return image.refused(flat, f"a value may be none of {named}", listed(known))
        return listed([*known, _value(unknown)])

    return ValueRewrite(_replacing_words(words, unknown), effect)


def _replacing_words(
    words: Mapping[Scalar, Scalar], unknown: Otherwise
) -> Callable[[Keys], ConversionStep]:
    # Index the words by their other spellings, so that a lookup takes constant time.
    numbers, texts = _spellings(words)

    def step_at(field: Keys) -> ConversionStep:
        def step(fields: JsonObject, form: JsonForm) -> None:
            holder = fields if len(field) == 1 else reach(fields, field, form)
            key = field[-1]
            if holder is None or key not in holder:
                return
            value = form.open(holder[key])
            if type(value) is str and type(known := words.get(value)) is str:
                holder[key] = known  # the most frequent case
                return
            word = unknown
            if value is None:
                word = None if form.of_places else words.get(None)
            elif isinstance(value, str | bool | Number):
                word = words.get(value, unknown)
                if word is unknown and isinstance(value, Number):
                    word = numbers.get(exact(value.digits), unknown)
                elif word is unknown and not form.typed and isinstance(value, str):
                    word = texts.get(value, unknown)
            if isinstance(word, Number):
                holder[key] = form.number(word.digits)
            elif not isinstance(word, Unknown):
                holder[key] = word
            elif word is Unknown.REFUSE:
                known = _listed(spelt(one) for one in words if one is not None)
                raise ConversionError(f"{kind(value)} other than {known}", field)

        return step

    return step_at


def _value(word: Scalar | Unknown) -> object:
    return PLAIN.number(word.digits) if isinstance(word, Number) else word


def _listed(words: Iterable[str]) -> str:
    given = [*words]
    return f"{', '.join(given[:_LISTED])}{' and more' if given[_LISTED:] else ''}"


def _spellings(
    words: Mapping[Scalar, Scalar],
) -> tuple[dict[Decimal | None, Scalar], dict[str, Scalar]]:
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
    return numbers, texts


def _replacing(known: Mapping[str, str], unknown: str | None, keep: bool) -> Callable[[str], str]:
    def convert(word: str) -> str:
        found = known.get(word, unknown)
        if found is not None:
            return found
        if keep:
            return word
        raise ValueError(f"a value other than {_listed(known)}")

    return convert
