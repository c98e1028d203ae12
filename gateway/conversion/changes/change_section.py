"""The base classes of the models of changes, and the context in which the models compile.

A change of bodies is a `BodySection`; a change of query parameters and header fields is a
`ParameterSection`. One model may be both. `registry` finds them all.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import new_class
from typing import ClassVar, NamedTuple, TypeVar, cast

from gateway.base import model as shape
from gateway.base.headers import HOP_BY_HOP
from gateway.base.mistakes import Location, Mistakes
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
# Header fields that the gateway writes itself.
_OURS = HOP_BY_HOP | {b"content-length", b"content-encoding", b"host"}
# The elements of arrays, nested in each other, or the members of an object.
_LEVEL = re.compile(r"(?:\[\])+\Z|(?<=[^\\])\.\*\Z|\A\*\Z")
_ANY_TWO = (Version(1), Version(2))
T = TypeVar("T")
S = TypeVar("S", bound="ChangeSection")


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The place of a change in gateway.yaml; its mistakes go to `mistakes`.

    Attributes:
        groups: The groups of changes that it may use, by name.
        between: The older and the newer version; None in a group, which has none.
        header: Whether it is a change of header fields, whose values are printable ASCII.
    """

    at: Location
    mistakes: Mistakes
    groups: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    between: tuple[Version, Version] | None = None
    header: bool = False

    def complain(self, text: str, *location: str | int) -> None:
        """Record a mistake at a place within the change."""
        self.mistakes.add(text, *self.at, *location)

    def warn(self, text: str) -> None:
        self.mistakes.warn(text, *self.at)

    def attempt(self, make: Callable[[], T], *location: str | int) -> T | None:
        """Return the result of `make`, or None after recording the ValueError that it raises."""
        return self.mistakes.attempt(make, *self.at, *location)

    def path(self, text: str, *location: str | int) -> FieldPath | None:
        """Return the path to a field, or None after a mistake."""
        found = self.attempt(partial(parse_path, text), *location)
        if found is not None and found.members:
            text = f"'{text}' ends in any member; name a field of the members"
            self.complain(text, *location)
            return None
        if found is None or not found.elements:
            return found
        self.complain(f"'{text}' ends in an array; name a field of its elements", *location)
        return None

    def value_change(
        self,
        text: str,
        make: Callable[[tuple[Scope, ...], Keys], Change],
        *location: str | int,
    ) -> Change | None:
        """Return the change of one value, or None after a mistake in its path.

        Args:
            text: The path, of a field, of the elements of an array, `tags[]`, or of the members of
                an object with free keys, `prices.*`; or of both, `sizes.*[]`. Without a key before
                them, they are those of the body, `[]`, or of the object itself, `*`.
            make: Returns the change of a field, given its scopes and keys.
            location: The place of the path within the change.
        """
        levels: list[int] = []
        while match := _LEVEL.search(text):
            levels.append(match[0].count("[]"))
            text = text[: match.start()]
        if not levels:
            path = self.attempt(partial(parse_path, text), *location)
            return None if path is None else make(path.scopes, path.keys)
        *inner, outermost = levels
        change = make((), ELEMENT)
        for depth in inner:
            change = elements((), ELEMENT, depth, change)
        if text:
            path = self.attempt(partial(parse_path, text), *location)
            return path and elements(path.scopes, path.keys, outermost, change)
        if not outermost:
            return elements((), (), 0, change)
        all_of_body = partial(elements, (), BODY, outermost, change)
        return whole_body(all_of_body(), all_of_body(keeps=True))

    def keys(self, text: str, *location: str | int) -> Keys | None:
        """Return the keys of a field that no array leads to, or None after a mistake."""
        path = self.path(text, *location)
        if path is not None and path.scopes:
            self.complain("has neither '[]' nor '*' here; write keys joined by dots", *location)
            return None
        return None if path is None else path.keys

    def paths(self, *named: tuple[str, tuple[str | int, ...]]) -> list[FieldPath] | None:
        """Return field paths through the same arrays, or None after a mistake.

        Args:
            named: Each path, with its place within the change.
        """
        found = [self.path(text, *location) for text, location in named]
        paths = [path for path in found if path is not None]
        if len(paths) < len(found):
            return None
        if any(path.scopes != paths[0].scopes for path in paths):
            self.complain(
                "the fields lie in the elements of different arrays; begin all with the same"
                " 'key[]'"
            )
            return None
        return paths

    def apart(self, keys: tuple[Keys, ...]) -> bool:
        """Whether no field is another, or lies in another; False after recording the mistake."""
        for index, one in enumerate(keys):
            for other in keys[index + 1 :]:
                if one[: len(other)] == other[: len(one)]:
                    self.complain(
                        "two parts are the same, or one lies inside the other; name each field once"
                    )
                    return False
        return True

    def name(self, name: str, key: str) -> str:
        """Return the name of a parameter, after recording its mistakes."""
        if not self.header:
            if not name:
                self.complain("must not be empty", key)
        elif not _NAME.match(name):
            self.complain("not the name of a header; write one like X-API-VERSION", key)
        elif name.lower().encode() in _OURS:
            self.complain("is written by the gateway itself; remove the change", key)
        return name

    def text(self, text: str, key: str) -> str:
        """Return the value of a parameter, after recording its mistakes."""
        if self.header and not _TEXT.match(text):
            self.complain("a header holds printable ASCII only", key)
        return text


class Loss(NamedTuple):
    """What one direction of a change loses.

    Attributes:
        newer: Whether it is lost on the way to the newer version, else to the older one.
        text: What is lost, with the name of the field.
        in_patch: Whether a PATCH of the field, as the other version has it, replaces it too.
        overwrites: Whether a client that writes back what it has read destroys a value. It does not
            where only an absent, null or empty value differs afterwards.
    """

    newer: bool
    text: str
    in_patch: bool = False
    overwrites: bool = True


class ChangeSection(SectionModel):
    """What changes of bodies and of parameters have in common.

    Attributes:
        keyword: The name of the change in gateway.yaml; empty for a base of changes.
        inverse: Whether the change is the inverse of the one that `compile_body`,
            `compile_parameter` and `own_losses` describe; see `opposite`.
    """

    keyword: ClassVar[str] = ""
    inverse: ClassVar[bool] = False

    @property
    def varies(self) -> bool:
        """Whether equal bodies may become bodies that differ."""
        return False

    @property
    def code(self) -> str:
        """A hash of the code that the change calls, if equal rules may have other code."""
        return ""

    @property
    def maps_links(self) -> bool:
        return False

    @property
    def needs_message(self) -> bool:
        return False

    @property
    def linked(self) -> tuple[str, str] | None:
        """The version of a link, `newer` or `older`, and a parameter of its query."""
        return None

    def seconds(self) -> float | None:
        """Return the longest time that the change of one body may take."""
        return None

    def own_losses(self) -> Iterable[Loss]:
        """Yield what each direction loses, whatever `inverse` is."""
        return ()

    def losses(self) -> Iterator[Loss]:
        """Yield what each direction loses: `check` warns of it."""
        for loss in self.own_losses():
            yield loss._replace(newer=loss.newer != self.inverse)

    def overwritten(self) -> Iterable[Loss]:
        """Return the values that a client destroys if it writes back what it has read.

        `newer` of each is the direction in which the client's version is read.
        """
        return (loss for loss in self.losses() if loss.overwrites)


class BodySection(ChangeSection):
    """A change that may stand among the `changes` of a conversion."""

    @abstractmethod
    def compile_body(self, context: BuildContext) -> Change | None:
        """Return the change, whatever `inverse` is, or None after recording a mistake."""

    def body_change(self, context: BuildContext) -> Change | None:
        """Return the change, or None after a mistake, which `context` records."""
        change = self.compile_body(context)
        return inverse(change) if self.inverse and change is not None else change

    @cached_property
    def field_use(self) -> FieldUse:
        """The fields that the change reads and writes; `check` finds conflicts by them."""
        change = self.body_change(BuildContext((), Mistakes(), between=_ANY_TWO))
        return FieldUse() if change is None else field_use(change)


class ParameterSection(ChangeSection):
    """A change that may stand in the `query` and `headers` of a conversion."""

    @abstractmethod
    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        """Return the change, whatever `inverse` is, or None after recording a mistake.

        The text of a header field has one character a byte (RFC 9110, section 5.5).
        """

    def parameter_change(self, context: BuildContext) -> ParameterChange | None:
        """Return the change, or None after a mistake, which `context` records."""
        change = self.compile_parameter(context)
        return inverse_parameter(change) if self.inverse and change is not None else change

    @cached_property
    def parameter_use(self) -> FieldUse:
        """The query parameters or header fields that the change reads and writes."""
        change = self.parameter_change(BuildContext((), Mistakes()))
        return FieldUse() if change is None else parameter_use(change)


def opposite(model: type[S], keyword: str, description: str) -> type[S]:
    """Return the model of the inverse of a change, which has the same keys.

    Args:
        keyword: The name of the inverse in gateway.yaml.
        description: The sentence about it in the reference.
    """
    kind = "" if issubclass(model, BodySection) else "Parameter"
    name = "".join(word.capitalize() for word in keyword.split("_")) + kind
    given = {"__doc__": description, "__module__": model.__module__, "keyword": keyword}
    made = new_class(name, (model,), exec_body=lambda body: body.update(given, inverse=True))
    return cast("type[S]", made)


class FormWays(NamedTuple):
    """The functions that write a value as each version does, and its types there.

    Attributes:
        to_newer: Writes a text, or the digits of a number, as the newer version does; it may raise
            ValueError.
        to_older: Writes it as the older version does.
    """

    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]
    newer: Type = Type.TEXT
    older: Type = Type.TEXT

    def change(self, scopes: tuple[Scope, ...], field: Keys) -> Change:
        """Return the change of the value of a field."""
        to_newer = rewrite_scalars(
            self.older, self.newer, self.to_newer, scalar_effect(self.older, self.newer)
        )
        to_older = rewrite_scalars(
            self.newer, self.older, self.to_older, scalar_effect(self.newer, self.older)
        )
        return value_change(scopes, field, to_newer, to_older)


def scalar_effect(source: Type, target: Type) -> SchemaEffect:
    """Return the effect on a schema of a scalar that may have no form in the other version."""

    def effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] not in JSON_TYPES[source]:
            return image.refused(flat, f"expected a {source}, found {flat['type']}")
        made = wide({"type": "string" if target is TEXT else "number"})
        return image.refused(flat, "a value may have another form", made)

    return effect


class RewriteSection(BodySection, ParameterSection):
    """A change of the form of one value."""

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""

    @abstractmethod
    def ways(self, context: BuildContext) -> FormWays | None:
        """Return the functions that write the value, or None after recording a mistake."""

    def compile_body(self, context: BuildContext) -> Change | None:
        ways = self.ways(context)
        return None if ways is None else context.value_change(self.field, ways.change, "field")

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        ways = self.ways(context)
        if ways is None:
            return None
        return rewritten(context.name(self.field, "field"), ways.to_newer, ways.to_older)
