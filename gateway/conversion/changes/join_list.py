"""`join_list` and `split_list`: a list of strings in one version, one string in the other.

If the string consists of pairs of a key and a value, it becomes an object instead of a list.
"""

from functools import partial
from typing import Annotated

from pydantic import Field

from gateway.base.model import NonEmptyText
from gateway.conversion.change import Change, rewrite_opened, value_change
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    ParameterSection,
    opposite,
)
from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.document import Document, JsonForm, JsonObject, refuse
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import (
    ParameterChange,
    ParameterLine,
    ParameterLines,
    Spelling,
    same_name,
)
from gateway.conversion.schema import Flat, SchemaImage, an_array, wide


class _SeparatedSection(ChangeSection):
    field: str
    """The field or parameter, which has the same name in both versions."""
    separator: Annotated[str, Field(min_length=1)] = ","
    """The string between two elements. The default is a comma."""


class JoinList(_SeparatedSection, BodySection):
    """Join a list of strings: the older version has one string with separators between elements."""

    keyword = "join_list"

    pairs: NonEmptyText | None = None
    """The string between the key and the value of each member if the newer version has an object of
    strings, as in `color=red;size=5`. Without it, the newer version has a list."""

    def compile_body(self, context: BuildContext) -> Change | None:
        path = context.path(self.field, "field")
        if path is None:
            return None
        if self.pairs is None:
            return join_list(path.scopes, path.keys, self.separator)
        if self.pairs == self.separator:
            context.mistakes.add("is also the separator; use another string", "pairs")
        return join_pairs(path.scopes, path.keys, self.separator, self.pairs)


SplitList = opposite(
    JoinList,
    "split_list",
    "Split a text: the older version has a list of the parts between the separators.",
)


class JoinListParameter(_SeparatedSection, ParameterSection):
    """Join a repeated parameter: the older version has one with separators between the values."""

    keyword = "join_list"

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        return join_repeated(context.name(self.field, "field"), self.separator)


SplitListParameter = opposite(
    JoinListParameter,
    "split_list",
    "Split a parameter: the older version repeats it for each value between the separators.",
)


def join_list(scopes: tuple[Scope, ...], field: Keys, separator: str) -> Change:
    """Return a change that joins a list of strings into one string for the older version.

    An empty list becomes an empty string. A downgrade refuses a list that the upgrade could not
    restore: a list with the separator in an element, or with an empty string as its only element.
    In both directions, null stays null, and an absent field stays absent.
    """

    def split(_: JsonForm, text: Document) -> Document:
        return split_text(text, separator) if isinstance(text, str) else refuse("a string", text)

    def split_effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] == "string":
            return wide(an_array({"type": "string"}))
        return image.refused(flat, f"expected a string, found {flat['type']}")

    def joined_effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] != "array":
            return image.refused(flat, f"expected an array, found {flat['type']}")
        return image.refused(flat, "an element may have a separator", wide({"type": "string"}))

    up, down = rewrite_opened(split, split_effect), partial(_join, separator)
    return value_change(scopes, field, up, rewrite_opened(down, joined_effect))


def _join(separator: str, form: JsonForm, elements: Document) -> Document:
    if not isinstance(elements, list):
        refuse("an array", elements)
    texts: list[str] = []
    for index, element in enumerate(elements):
        text = form.open(element)
        if not isinstance(text, str):
            refuse("a string", text, index)
        if separator in text:
            raise ConversionError(f"a string that contains '{separator}'", (index,))
        texts.append(text)
    if texts == [""]:
        reason = "an empty string alone, which would become an empty list"
        raise ConversionError(reason, (0,))
    text = separator.join(texts)
    if (
        texts and text.split(separator) != texts
    ):  # for example, 'a;' and 'b' with the separator ';;'
        raise ConversionError(f"an element begins or ends with a part of '{separator}'")
    return text


# The default of `limits.elements`, which limits received bodies. A string of 16 MB could otherwise
# become a list that takes a gigabyte.
_MOST_PIECES = 1_000_000


def split_text(text: str, separator: str) -> list[str]:
    """Split a string; raises ConversionError for more than a million pieces."""
    if text.count(separator) >= _MOST_PIECES:
        raise ConversionError(f"a string of more than {_MOST_PIECES} pieces")
    return text.split(separator) if text else []


def join_pairs(scopes: tuple[Scope, ...], field: Keys, separator: str, equals: str) -> Change:
    """Return a change that joins an object of strings into one string for the older version.

    The string looks like `color=red;size=5`. An empty object becomes an empty string. A downgrade
    refuses an object that the upgrade could not restore. In both directions, null stays null, and
    an absent field stays absent.

    Args:
        equals: The string between the key and the value of a pair. Its first occurrence in a pair
            ends the key.
    """

    def effect(source: str, made: Flat, flat: Flat, image: SchemaImage) -> object:
        fits = flat["type"] == source
        return image.refused(flat, "a pair may not fit", wide(made) if fits else False)

    texts: Flat = {"type": "object", "additionalProperties": {"type": "string"}}
    return value_change(
        scopes,
        field,
        rewrite_opened(partial(_split_pairs, separator, equals), partial(effect, "string", texts)),
        rewrite_opened(
            partial(_join_pairs, separator, equals), partial(effect, "object", {"type": "string"})
        ),
    )


def _split_pairs(separator: str, equals: str, form: JsonForm, text: Document) -> Document:
    if not isinstance(text, str):
        refuse("a string", text)
    members: JsonObject = {}
    for pair in split_text(text, separator):
        key, sign, value = pair.partition(equals)
        if not sign:
            raise ConversionError(f"a part of the string has no '{equals}'")
        if key in members:
            raise ConversionError("a key occurs twice in the string")
        members[key] = value
    return form.close(members)


def _join_pairs(separator: str, equals: str, form: JsonForm, members: Document) -> Document:
    if not isinstance(members, dict):
        refuse("an object", members)
    pairs: list[str] = []
    for key, sealed in members.items():
        value = form.open(sealed)
        if not isinstance(value, str):
            refuse("a string", value, key)
        pair = f"{key}{equals}{value}"
        # A separator may also result from the concatenation, as '==' from '=' and a value '=1'.
        if pair.split(separator) != [pair] or pair.partition(equals)[0] != key:
            raise ConversionError(f"contains '{separator}', or its key contains '{equals}'", (key,))
        pairs.append(pair)
    text = separator.join(pairs)
    if text.split(separator) != (pairs or [""]):
        raise ConversionError(f"a key or value begins or ends with a part of '{separator}'")
    return text


# More values exceed all usual limits on queries and header fields, and take long to create.
_MOST_LINES = 10_000


def join_repeated(name: str, separator: str) -> ParameterChange:
    """Return a change that joins the values of a repeated parameter for the older version.

    A value without the separator, even an empty value, stays one value. A downgrade refuses a value
    that contains the separator, because the upgrade would split the value.
    """

    def up(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key, made = spelling.key(name), list[ParameterLine]()
        for line in lines:
            texts = []
            if line.key == key:
                text = spelling.read(line.value or "")
                if text.count(separator) + len(made) >= _MOST_LINES:
                    reason = f"would be more than {_MOST_LINES} of them"
                    raise ConversionError(reason, Beside(spelling.what, (name,)))
                texts = text.split(separator)
            if len(texts) > 1:
                made += (line._replace(value=spelling.write(text)) for text in texts)
            else:
                made.append(line)
        return made

    def down(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key = spelling.key(name)
        texts = [spelling.read(line.value or "") for line in lines if line.key == key]
        if any(separator in text for text in texts):
            reason = f"contains '{separator}', which separates the values"
            raise ConversionError(reason, Beside(spelling.what, (name,)))
        if len(texts) < 2:
            return lines
        first = next(index for index, line in enumerate(lines) if line.key == key)
        whole = lines[first]._replace(value=spelling.write(separator.join(texts)))
        return [*lines[:first], whole, *(line for line in lines[first:] if line.key != key)]

    return ParameterChange(same_name(name), up, down)
