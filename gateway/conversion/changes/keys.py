"""`keys`: the older version writes the keys of a map differently."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated

from pydantic import Field

from gateway.base.model import SectionModel
from gateway.conversion.change import Change, ValueRewrite, rewrite_opened, value_change
from gateway.conversion.changes.affix import rewrite_affixes
from gateway.conversion.changes.change_section import BodySection, BuildContext
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace, Origin
from gateway.conversion.document import Document, JsonForm, JsonObject, refuse
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.schema import Flat, SchemaImage, renamed_fields, rest_of

Write = Callable[[str], str]


class KeyForm(SectionModel):
    """The form of the keys of a map in one version."""

    prefix: str = ""
    """The string before each key. The default is an empty string."""
    suffix: str = ""
    """The string after each key. The default is an empty string."""


class RewriteKeys(BodySection):
    """Write the keys of a map differently, such as cur_EUR for EUR: other words, or a prefix."""

    keyword = "keys"

    field: str
    """The field that holds the map, whose values are not changed."""
    values: Annotated[dict[str, str], Field(min_length=1)] | None = None
    """The keys of the older version by the keys of the newer version. Other keys are unchanged."""
    newer: KeyForm = KeyForm()
    """The newer version's form of the keys; the default is no prefix and no suffix."""
    older: KeyForm = KeyForm()
    """The older version's form of the keys; the default is no prefix and no suffix."""

    def compile_body(self, context: BuildContext) -> Change | None:
        ways = self._ways(context)
        path = context.path(self.field, "field")
        return None if ways is None or path is None else rewrite_keys(*path[:2], *ways)

    def _ways(self, context: BuildContext) -> tuple[Write, Write] | None:
        if (self.values is None) == (self.newer == self.older):
            context.mistakes.add(
                "needs either values: { EUR: euro } or a prefix or suffix, such as"
                " older: { prefix: cur_ }"
            )
            return None
        if self.values is None:
            newer, older = ((form.prefix, form.suffix) for form in (self.newer, self.older))
            return rewrite_affixes(*older, *newer), rewrite_affixes(*newer, *older)
        back = {older: newer for newer, older in self.values.items()}
        for key, older_key in self.values.items():
            if back[older_key] != key:
                context.mistakes.add(
                    f"becomes '{older_key}', like '{back[older_key]}'; use different keys",
                    "values",
                    key,
                )
                return None
        return replace_keys(back, self.values), replace_keys(self.values, back)


def replace_keys(words: Mapping[str, str], back: Mapping[str, str]) -> Write:
    """Return a function that replaces the keys in `words`. Other keys are unchanged.

    It raises ValueError for a key that is only in `back`, because the opposite conversion would
    change the key.
    """

    def replaced(key: str) -> str:
        if key not in words and key in back:
            raise ValueError("is the new name of another key in the other version")
        return words.get(key, key)

    return replaced


def rewrite_keys(
    scopes: tuple[Scope, ...], field: Keys, to_newer: Write, to_older: Write
) -> Change:
    """Return a change that converts the keys of an object, but not their values and order.

    In both directions, an absent field stays absent, and null stays null. The functions may raise
    ValueError.
    """
    return value_change(
        scopes, field, _rewriting(to_newer, to_older), _rewriting(to_older, to_newer)
    )


def _rewriting(write: Write, back: Write) -> ValueRewrite:
    def effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] != "object":
            return image.refused(flat, f"expected an object, found {flat['type']}")
        made = renamed_fields(flat, write, image)
        if rest_of(flat) is False:
            return made
        return image.refused(flat, "a key may not fit", made)

    def origin_at(field: Keys) -> Origin:
        depth = len(field)

        def origin(place: ErrorPlace) -> ErrorPlace:
            if isinstance(place, Beside) or place[:depth] != field or not place[depth:]:
                return place
            try:
                return (*field, back(str(place[depth])), *place[depth + 1 :])
            except ValueError:  # the other version cannot have such a key
                return field

        return origin

    return rewrite_opened(partial(_rewritten, write), effect, origin_at)


def _rewritten(write: Write, form: JsonForm, value: Document) -> Document:
    if not isinstance(value, dict):
        refuse("an object", value)
    made: JsonObject = {}
    for key, member in value.items():
        try:
            name = write(key)
        except ValueError as error:
            raise ConversionError(f"the key: {error}", (key,)) from None
        if name in made:
            raise ConversionError(f"becomes '{name}', which already exists", (key,))
        made[name] = member
    return value if made == value else form.close(made)
