"""`map`: the older version has different words for the same values."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from gateway.config.changes.change_section import BodySection, Loss, ParameterSection, Upgrade
from gateway.config.changes.change_site import BodySite, ChangeSite, ParameterSite
from gateway.config.changes.value_kinds import one_of, spelt
from gateway.config.shape import SectionModel
from gateway.core.conversion.change import Change
from gateway.core.conversion.changes.map import Map, Otherwise, Unknown, words
from gateway.core.conversion.document import Number
from gateway.core.conversion.parameter_change import ParameterChange, Rewritten
from gateway.core.conversion.scalars import Scalar


def _word(value: JsonValue) -> JsonValue:
    if isinstance(value, str | bool | int):
        return value
    raise ValueError("expected a text, a whole number, true or false")


MapWord = Annotated[JsonValue, AfterValidator(_word)]


class WordsConfig(SectionModel):
    """The word of each version that stands for every value which a map does not name."""

    older: MapWord | None = None
    """The older version's word for every other value; without it, `unknown` decides."""
    newer: MapWord | None = None
    """The newer version's word for every other value; without it, `unknown` decides."""


class MapConfig(BodySection, ParameterSection):
    """Replace words: the older version has different words for the same values."""

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    values: Annotated[dict[str, MapWord], Field(min_length=1)]
    """The older version's word for each word of the newer version."""
    back: dict[str, MapWord] = Field(default_factory=dict)
    """The newer version's word for a word of the older one that `values` names twice or not."""
    unknown: Literal["refuse", "keep"] = "refuse"
    """What is done with other values: refuse them, or keep them. The default is refuse."""
    default: WordsConfig | None = None
    """The words that every other value becomes; without them, `unknown` decides."""

    @classmethod
    def parameter_form(cls) -> type[ParameterSection]:
        """Return the same model: parameters have values as well."""
        return cls

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads and leaves the words that are named, if others are refused.

        A word for every other value makes each readable.
        """
        if self.unknown == "keep":
            return Upgrade.in_place(self.field)
        newer = self._otherwise.newer
        read = [*map(_scalar, self.values.values()), *self.back]
        left = [*self.values, *map(_scalar, self.back.values())]
        if newer is None:
            return Upgrade.in_place(self.field, one_of(read), one_of(left))
        return Upgrade.in_place(self.field, None, one_of([*left, _scalar(newer)]))

    def losses(self) -> Iterator[Loss]:
        """Yield the words of one version that become the same in the other."""
        older = {word: spelt(_scalar(known)) for word, known in self.values.items()}
        newer = {known: word for word, known in older.items()}
        newer |= {word: spelt(_scalar(known)) for word, known in self.back.items()}
        for is_newer, known_words in ((False, older), (True, newer)):
            folded: dict[str, list[str]] = {}
            for word, known in known_words.items():
                folded.setdefault(known, []).append(word)
            for known, several in folded.items():
                if len(several) > 1:
                    yield Loss(is_newer, f"'{self.field}' is {known} for {' and '.join(several)}")
        for is_newer, other in ((False, self._otherwise.older), (True, self._otherwise.newer)):
            if other is not None:
                known = spelt(_scalar(other))
                yield Loss(is_newer, f"'{self.field}' is {known} for every other value")

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        path = site.path(self.field, "field")
        if path is None:
            return None
        older: dict[Scalar, Scalar] = {word: _scalar(known) for word, known in self.values.items()}
        return Map(
            path.scopes,
            path.keys,
            older,
            self._way_back(site),
            self._other(self._otherwise.older),
            self._other(self._otherwise.newer),
        )

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter, whose words are texts."""
        to_older = {word: spelt(_scalar(known)) for word, known in self.values.items()}
        to_newer = {spelt(word): spelt(known) for word, known in self._way_back(site).items()}
        for text in (*to_older.values(), *to_newer.values()):
            site.text(text, "values")
        keep = self.unknown == "keep"
        return Rewritten(
            site.name(self.field, "field"),
            words(to_newer, _text(self._otherwise.newer), keep=keep),
            words(to_older, _text(self._otherwise.older), keep=keep),
        )

    @property
    def _otherwise(self) -> WordsConfig:
        return self.default or WordsConfig()

    def _other(self, word: JsonValue) -> Otherwise:
        return Unknown(self.unknown) if word is None else _scalar(word)

    def _way_back(self, site: ChangeSite) -> dict[Scalar, Scalar]:
        """Return the newer version's word for each of the older one's; records what is missing."""
        back: dict[Scalar, list[str]] = {}
        for newer, known in self.values.items():
            back.setdefault(_scalar(known), []).append(newer)
        found: dict[Scalar, Scalar] = {
            word: names[0] for word, names in back.items() if len(names) == 1
        }
        for text, known in self.back.items():
            # A key is a text in YAML, whatever it is in documents.
            word = next((word for word in back if spelt(word) == text), text)
            found[word] = _scalar(known)
        for word, names in back.items():
            if word not in found:
                site.complain(
                    f"{' and '.join(names)} become the same; say what that becomes on the way"
                    f" back: back: {{ {spelt(word)}: {names[0]} }}",
                    "values",
                )
        return found


def _scalar(word: JsonValue) -> Scalar:
    """Return a word as documents have it."""
    return word if isinstance(word, str | bool) else Number(str(word))


def _text(word: JsonValue) -> str | None:
    return None if word is None else spelt(_scalar(word))
