"""The base classes of the models of changes, and the context in which the models compile.

`registry` lists all models.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import new_class
from typing import ClassVar, NamedTuple, TypeVar, cast

from gateway.base import model as shape
from gateway.base.headers import HOP_BY_HOP
from gateway.base.mistakes import Mistakes
from gateway.base.model import SectionModel
from gateway.conversion.change import (
    ELEMENT,
    Change,
    SchemaEffect,
    elements,
    inverse,
    rewrite_scalars,
    value_change,
    whole_body,
)
from gateway.conversion.changes.field_use import FieldUse, field_use, parameter_use
from gateway.conversion.field_path import FieldPath, Keys, Scope, parse_path
from gateway.conversion.parameter_change import ParameterChange, inverse_parameter, rewritten
from gateway.conversion.scalars import TEXT, Type
from gateway.conversion.schema import JSON_TYPES, Flat, SchemaImage, wide
from gateway.conversion.steps import BODY
from gateway.versions.version import Version

_NAME = re.compile(shape.FIELD_NAME)
_TEXT = re.compile(r"[ -~]*\Z")
_OURS = HOP_BY_HOP | {b"content-length", b"content-encoding", b"host"}
# The end of a path that stands for the elements of (nested) arrays or the members of an object.
_LEVEL = re.compile(r"(?:\[\])+\Z|(?<=[^\\])\.\*\Z|\A\*\Z")
_ANY_TWO = (Version(1, "1"), Version(2, "2"))
T = TypeVar("T")
S = TypeVar("S", bound="ChangeSection")


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The surroundings in which the model of a change compiles.

    Attributes:
        mistakes: Collects the mistakes; their locations start at the change.
        between: The older and the newer version. None in a group, which belongs to no version.
        header: Whether the change converts header fields, whose values are printable ASCII.
    """

    mistakes: Mistakes
    groups: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    between: tuple[Version, Version] | None = None
    header: bool = False

    def below(self, *location: str | int) -> "BuildContext":
        return replace(self, mistakes=self.mistakes.below(*location))

    def path(self, text: str, *location: str | int) -> FieldPath | None:
        found = self.mistakes.attempt(partial(parse_path, text), *location)
        if found is not None and found.members:
            text = f"'{text}' ends with '*'; name a field of the members"
            self.mistakes.add(text, *location)
            return None
        if found is None or not found.elements:
            return found
        self.mistakes.add(f"'{text}' ends with '[]'; name a field of the elements", *location)
        return None

    def value_change(
        self,
        text: str,
        make: Callable[[tuple[Scope, ...], Keys], Change],
        *location: str | int,
    ) -> Change | None:
        """Return the change of all values at a path; return None after recording a mistake.

        Args:
            text: The path to a field, to the elements of an array (`tags[]`), to the members of an
                object with free keys (`prices.*`), or a combination (`sizes.*[]`). `[]` alone is
                the elements of the body, and `*` alone is the members of the object itself.
            make: Returns the change of one field, given its scopes and keys.
        """
        levels: list[int] = []
        while match := _LEVEL.search(text):
            levels.append(match[0].count("[]"))
            text = text[: match.start()]
        if not levels:
            path = self.mistakes.attempt(partial(parse_path, text), *location)
            return None if path is None else make(path.scopes, path.keys)
        *inner, outermost = levels
        change = make((), ELEMENT)
        for depth in inner:
            change = elements((), ELEMENT, depth, change)
        if text:
            path = self.mistakes.attempt(partial(parse_path, text), *location)
            return path and elements(path.scopes, path.keys, outermost, change)
        if not outermost:
            return elements((), (), 0, change)
        all_of_body = partial(elements, (), BODY, outermost, change)
        return whole_body(all_of_body(), all_of_body(keeps=True))

    def keys(self, text: str, *location: str | int) -> Keys | None:
        """Parse a path without arrays or free keys; return None after a mistake."""
        path = self.path(text, *location)
        if path is not None and path.scopes:
            self.mistakes.add(
                "must not contain '[]' or '*' here; write keys joined by dots", *location
            )
            return None
        return None if path is None else path.keys

    def paths(self, *named: tuple[str, tuple[str | int, ...]]) -> list[FieldPath] | None:
        found = [self.path(text, *location) for text, location in named]
        paths = [path for path in found if path is not None]
        if len(paths) < len(found):
            return None
        if any(path.scopes != paths[0].scopes for path in paths):
            self.mistakes.add(
                "the fields are in elements of different arrays; begin all with the same 'key[]'"
            )
            return None
        return paths

    def apart(self, keys: tuple[Keys, ...]) -> bool:
        for index, one in enumerate(keys):
            for other in keys[index + 1 :]:
                if one[: len(other)] == other[: len(one)]:
                    self.mistakes.add(
                        "two fields are the same, or one is inside the other; name each field once"
                    )
                    return False
        return True

    def name(self, name: str, key: str) -> str:
        if not self.header:
            if not name:
                self.mistakes.add("must not be empty", key)
        elif not _NAME.match(name):
            self.mistakes.add("not a header name; write one like X-API-VERSION", key)
        elif name.lower().encode() in _OURS:
            self.mistakes.add("is written by the gateway itself; remove the change", key)
        return name

    def text(self, text: str, key: str) -> str:
        if self.header and not _TEXT.match(text):
            self.mistakes.add("a header can contain only printable ASCII", key)
        return text


class Loss(NamedTuple):
    """Data that one direction of a change loses.

    Attributes:
        newer: Whether the conversion to the newer version loses the data. If false, the conversion
            to the older version does.
        in_patch: Whether a PATCH of the field in the other version also overwrites the data.
        overwrites: Whether a client destroys a value if it writes a document back as it read it.
            False if only absent, null and empty values are confused.
    """

    newer: bool
    text: str
    in_patch: bool = False
    overwrites: bool = True


class ChangeSection(SectionModel):
    """The common base of all models of changes.

    Attributes:
        inverse: Whether the model declares the inverse of the change that `compile_body`,
            `compile_parameter` and `own_losses` describe; see `opposite`.
        shares_list: Whether other changes may also add values to the list that it changes.
    """

    keyword: ClassVar[str] = ""
    inverse: ClassVar[bool] = False
    shares_list: ClassVar[bool] = False

    @property
    def varies(self) -> bool:
        """Whether equal bodies may be converted to different bodies."""
        return False

    @property
    def code(self) -> str:
        """A hash of the Python code that the change calls; empty if it calls no such code."""
        return ""

    @property
    def maps_links(self) -> bool:
        return False

    @property
    def needs_message(self) -> bool:
        return False

    @property
    def read_capture(self) -> str | None:
        """The capture of a path that the change reads."""
        return None

    @property
    def linked(self) -> tuple[str, str] | None:
        """The version (`newer` or `older`) of a carried link, and its carried query parameter."""
        return None

    def seconds(self) -> float | None:
        """Return the maximum time in seconds for the change of one body; None sets no limit."""
        return None

    def own_losses(self) -> Iterable[Loss]:
        """Yield the data that each direction loses, without regard to `inverse`."""
        return ()

    def losses(self) -> Iterator[Loss]:
        """Yield the data that each direction loses. The command `check` warns of these losses."""
        for loss in self.own_losses():
            yield loss._replace(newer=loss.newer != self.inverse)

    def filter_losses(self) -> Iterable[Loss]:
        """Yield what a filter of the older version does not find if the change is in a query."""
        return ()

    def overwritten(self) -> Iterable[Loss]:
        """Return the values that a client destroys if it writes a document back as it read it.

        `Loss.newer` then refers to the conversion of the document that the client reads.
        """
        return (loss for loss in self.losses() if loss.overwrites)


class BodySection(ChangeSection):
    """A change that `changes` of a conversion may contain."""

    @abstractmethod
    def compile_body(self, context: BuildContext) -> Change | None:
        """Return the change without regard to `inverse`, or None after recording a mistake."""

    def body_change(self, context: BuildContext) -> Change | None:
        change = self.compile_body(context)
        return inverse(change) if self.inverse and change is not None else change

    @cached_property
    def field_use(self) -> FieldUse:
        change = self.body_change(BuildContext(Mistakes(), between=_ANY_TWO))
        return FieldUse() if change is None else field_use(change)


class ParameterSection(ChangeSection):
    """A change that `query` and `headers` of a conversion may contain."""

    @abstractmethod
    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        """Return the change without regard to `inverse`, or None after recording a mistake.

        Each character in the value of a header field stands for one byte (RFC 9110, section 5.5).
        """

    def parameter_change(self, context: BuildContext) -> ParameterChange | None:
        change = self.compile_parameter(context)
        return inverse_parameter(change) if self.inverse and change is not None else change

    @cached_property
    def parameter_use(self) -> FieldUse:
        change = self.parameter_change(BuildContext(Mistakes()))
        return FieldUse() if change is None else parameter_use(change)


def opposite(model: type[S], keyword: str, description: str) -> type[S]:
    """Return a model for the inverse of a change. Both models have the same keys in gateway.yaml.

    Args:
        description: Describes the inverse change in the reference documentation.
    """
    kind = "" if issubclass(model, BodySection) else "Parameter"
    name = "".join(word.capitalize() for word in keyword.split("_")) + kind
    given = {"__doc__": description, "__module__": model.__module__, "keyword": keyword}
    made = new_class(name, (model,), exec_body=lambda body: body.update(given, inverse=True))
    return cast("type[S]", made)


class FormWays(NamedTuple):
    """The functions that convert a value to each version, and the type of the value there.

    Both functions get a string, or the digits of a number, and may raise ValueError.
    """

    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]
    newer: Type = Type.TEXT
    older: Type = Type.TEXT

    def change(self, scopes: tuple[Scope, ...], field: Keys) -> Change:
        to_newer = rewrite_scalars(
            self.older,
            self.newer,
            self.to_newer,
            _scalar_effect(self.older, self.newer, self.to_newer),
        )
        to_older = rewrite_scalars(
            self.newer,
            self.older,
            self.to_older,
            _scalar_effect(self.newer, self.older, self.to_older),
        )
        return value_change(scopes, field, to_newer, to_older)


# A sample value of each `format` and type. A change that converts it converts all such values.
_SAMPLES = {
    "date-time": "2026-12-31T18:00:00Z",
    "date": "2026-12-31",
    "time": "18:00:00Z",
    "integer": "1798740000",
    "number": "1798740000.5",
}


def _scalar_effect(source: Type, target: Type, convert: Callable[[str], str]) -> SchemaEffect:
    def refused(sample: str) -> str:
        try:
            convert(sample)
        except ValueError as error:
            return str(error)
        return ""

    def effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] not in JSON_TYPES[source]:
            return image.refused(flat, f"expected a {source}, found {flat['type']}")
        made = wide({"type": "string" if target is TEXT else "number"})
        kind = flat["type"] if flat["type"] != "string" else flat.get("format")
        fits = kind in _SAMPLES and not refused(_SAMPLES[kind])
        reason = refused("") or "a value may have another form"
        return image.refused(flat, reason, made, None if fits else ())

    return effect


class RewriteSection(BodySection, ParameterSection):
    """A change of how a single value is written."""

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""

    @abstractmethod
    def ways(self, context: BuildContext) -> FormWays | None:
        """Return the functions that convert the value, or None after recording a mistake."""

    def compile_body(self, context: BuildContext) -> Change | None:
        ways = self.ways(context)
        return None if ways is None else context.value_change(self.field, ways.change, "field")

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        ways = self.ways(context)
        if ways is None:
            return None
        return rewritten(context.name(self.field, "field"), ways.to_newer, ways.to_older)
