"""`join_list` and `split_list`: a list of texts in one version, one text in the other.

The text may have pairs of keys and values; they become an object instead of a list.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from gateway.base.model import NonEmptyText
from gateway.conversion.change import Change, FieldChange, Inverse
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace, is_within
from gateway.conversion.document import Document, JsonForm, JsonObject, change_value, refuse
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterChange,
    ParameterLine,
    ParameterLines,
    Reversed,
    Spelling,
)
from gateway.conversion.schema import Flat, SchemaImage, an_array, wide


@dataclass(frozen=True, slots=True)
class JoinList(FieldChange):
    """The newer version has a list of texts, the older one a single text with separators.

    The empty list is the empty text. A list with the separator in an element, or with the empty
    text alone, is refused, since it would not come back as it was. Null stays null, and an absent
    field stays absent, both ways.
    """

    separator: str

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        change_value(fields, self.field, form, self._split)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        change_value(fields, self.field, form, partial(self._join, form))

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if upwards and flat["type"] == "string":
            return wide(an_array({"type": "string"}))
        if upwards or flat["type"] != "array":
            return image.refused(flat, f"found {flat['type']}")
        return image.refused(flat, "an element may have a separator", wide({"type": "string"}))

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
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


# More are beyond every limit that is usual for a query or for header fields, and cost much to make.
_MOST_LINES = 10_000


@dataclass(frozen=True, slots=True)
class Repeated:
    """The newer version repeats a parameter where the older one has its values in one text.

    A text without the separator is one value, the empty text too. A value that has the separator in
    it is refused on the way to the older version, since it would come back as two.

    Attributes:
        name: The name of the parameter in both versions.
        separator: The text between two values.
    """

    name: str
    separator: str

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return (MovedNames((self.name,), (self.name,)),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key, made = spelling.key(self.name), list[ParameterLine]()
        for line in lines:
            texts = []
            if line.key == key:
                text = spelling.read(line.value or "")
                if text.count(self.separator) + len(made) >= _MOST_LINES:
                    reason = f"would be more than {_MOST_LINES} of them"
                    raise ConversionError(reason, Beside(spelling.what, (self.name,)))
                texts = text.split(self.separator)
            if len(texts) > 1:
                made += (line._replace(value=spelling.write(text)) for text in texts)
            else:
                made.append(line)
        return made

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key = spelling.key(self.name)
        texts = [spelling.read(line.value or "") for line in lines if line.key == key]
        if any(self.separator in text for text in texts):
            reason = f"has '{self.separator}' in it, which separates the values"
            raise ConversionError(reason, Beside(spelling.what, (self.name,)))
        if len(texts) < 2:
            return lines
        first = next(index for index, line in enumerate(lines) if line.key == key)
        whole = lines[first]._replace(value=spelling.write(self.separator.join(texts)))
        return [*lines[:first], whole, *(line for line in lines[first:] if line.key != key)]


class _SeparatedSection(ChangeSection):
    """What `join_list` and `split_list` of bodies and of parameters have in common.

    Attributes:
        inverse: whether the older version has the list, else the newer one.
    """

    field: str
    """The field or parameter, which has the same name in both versions."""
    separator: Annotated[str, Field(min_length=1)] = ","
    """The text between two elements. The default is a comma."""

    inverse: ClassVar[bool] = False

    def losses(self) -> Iterable[Loss]:
        return ()


class _TextsSection(_SeparatedSection, BodySection):
    """What `join_list` and `split_list` of bodies have in common."""

    pairs: NonEmptyText | None = None
    """The text between the key and the value of each element, for an object of texts instead of a
    list, as in `color=red;size=5`. Without it, there are no keys."""

    def body_change(self, context: BodyContext) -> Change | None:
        path = context.path(self.field, "field")
        if path is None:
            return None
        change: Change = JoinList(path.scopes, path.keys, self.separator)
        if self.pairs is not None:
            if self.pairs == self.separator:
                context.complain("is the separator, too; name another text", "pairs")
            change = JoinPairs(path.scopes, path.keys, self.separator, self.pairs)
        return Inverse(change) if self.inverse else change


class JoinListConfig(_TextsSection):
    """Join a list of texts: the older version has one text, with a separator between elements."""

    keyword = "join_list"


class SplitListConfig(_TextsSection):
    """Split a text: the older version has a list of the parts between the separators."""

    keyword = "split_list"

    inverse = True


class _RepeatedSection(_SeparatedSection, ParameterSection):
    """What `join_list` and `split_list` of parameters have in common."""

    def parameter_change(self, context: ParameterContext) -> ParameterChange:
        change = Repeated(context.name(self.field, "field"), self.separator)
        return Reversed(change) if self.inverse else change


class JoinListParameterConfig(_RepeatedSection):
    """Join a repeated parameter: the older version has it once, with separators between values."""

    keyword = "join_list"


class SplitListParameterConfig(_RepeatedSection):
    """Split a parameter: the older version repeats it for each value between the separators."""

    keyword = "split_list"

    inverse = True


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
        change_value(fields, self.field, form, partial(self._split, form))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        change_value(fields, self.field, form, partial(self._join, form))

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        made: Flat = {"type": "string"}
        if upwards:
            made = {"type": "object", "additionalProperties": {"type": "string"}}
        fits = flat["type"] == ("string" if upwards else "object")
        return image.refused(flat, "a pair may not fit", wide(made) if fits else False)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
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
