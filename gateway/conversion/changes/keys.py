"""`keys`: the older version writes the keys of a map otherwise."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gateway.base.model import SectionModel
from gateway.conversion.change import Change, FieldChange
from gateway.conversion.changes.affix import AffixForm
from gateway.conversion.changes.build_context import BodyContext
from gateway.conversion.changes.change_section import BodySection, Loss
from gateway.conversion.changes.value_rewrite import FormRewriting
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import Document, JsonForm, JsonObject, change_value, refuse
from gateway.conversion.schema import Flat, SchemaImage, renamed_fields, rest_of


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
        self._rewrite(fields, form, self.to_newer)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self._rewrite(fields, form, self.to_older)

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if flat["type"] != "object":
            return image.refused(flat, f"expected an object, found {flat['type']}")
        made = renamed_fields(flat, self.to_newer if upwards else self.to_older, image)
        if rest_of(flat) is False:
            return made
        return image.refused(flat, "a key may not fit", made)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
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


class KeyFormConfig(SectionModel):
    """How one version writes the keys of a map."""

    prefix: str = ""
    """The text before each key. The default is the empty text."""
    suffix: str = ""
    """The text after each key. The default is the empty text."""


class KeysConfig(BodySection):
    """Write map keys in another form, such as cur_EUR for EUR: by words, or by a prefix."""

    keyword = "keys"

    field: str
    """The field that holds the map; its values stay."""
    values: Annotated[dict[str, str], Field(min_length=1)] | None = None
    """The older version's keys by the newer version's. Other keys stay as they are."""
    newer: KeyFormConfig = KeyFormConfig()
    """The newer version's form of the keys; the default is no prefix and no suffix."""
    older: KeyFormConfig = KeyFormConfig()
    """The older version's form of the keys; the default is no prefix and no suffix."""

    def losses(self) -> Iterable[Loss]:
        return ()

    def body_change(self, context: BodyContext) -> Change | None:
        ways = self._ways(context)
        path = context.path(self.field, "field")
        if ways is None or path is None:
            return None
        return FreeKeys(path.scopes, path.keys, *ways)

    def _ways(
        self, context: BodyContext
    ) -> tuple[Callable[[str], str], Callable[[str], str]] | None:
        """Return what writes the newer version's keys and the older one's, or None."""
        if (self.values is None) == (self.newer == self.older):
            context.complain(
                "writes keys by exactly one of values: { EUR: euro } and a prefix or suffix, as"
                " older: { prefix: cur_ }"
            )
            return None
        if self.values is None:
            newer = AffixForm(self.newer.prefix, self.newer.suffix)
            older = AffixForm(self.older.prefix, self.older.suffix)
            return FormRewriting(older, newer), FormRewriting(newer, older)
        back = {older: newer for newer, older in self.values.items()}
        for key, older_key in self.values.items():
            if back[older_key] != key:
                context.complain(f"is '{older_key}', as '{back[older_key]}' is", "values", key)
                return None
        there = frozenset(back), frozenset(self.values)
        return KeyWords(back, there[1]), KeyWords(self.values, there[0])
