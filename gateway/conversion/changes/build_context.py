"""The context in which a change is built: its location, and what its names and values may be."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from gateway.base import model as shape
from gateway.base.headers import HOP_BY_HOP
from gateway.base.mistakes import Location, Mistakes
from gateway.conversion.change import ELEMENT, Change, Elements, Whole
from gateway.conversion.field_path import FieldPath, Keys, Scope, parse_path
from gateway.conversion.steps import BODY
from gateway.versions.version import Version

_NAME = re.compile(shape.FIELD_NAME)
_TEXT = re.compile(r"[ -~]*\Z")
# The gateway writes these itself, by what it sends.
_OURS = HOP_BY_HOP | {b"content-length", b"content-encoding", b"host"}
# The elements of arrays, nested in each other, or the members of an object.
_LEVEL = re.compile(r"(?:\[\])+\Z|(?<=[^\\])\.\*\Z|\A\*\Z")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The place of a change in gateway.yaml; what is wrong with it goes to `mistakes`."""

    at: Location
    mistakes: Mistakes

    def complain(self, text: str, *location: str | int) -> None:
        """Record a mistake at a place within the change."""
        self.mistakes.add(text, *self.at, *location)

    def warn(self, text: str) -> None:
        """Record a warning about the change."""
        self.mistakes.warn(text, *self.at)

    def attempt(self, make: Callable[[], T], *location: str | int) -> T | None:
        """Return what `make` returns, or None after recording the ValueError that it raises."""
        return self.mistakes.attempt(make, *self.at, *location)


@dataclass(frozen=True, slots=True)
class BodyContext(BuildContext):
    """The place of a change of bodies.

    Attributes:
        groups: the groups of changes that it may use, by name.
        between: the older and the newer version; None in a group, which has none.
    """

    groups: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    between: tuple[Version, Version] | None = None

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
            text: the path, of a field, of the elements of an array, `tags[]`, or of the members of
                an object with free keys, `prices.*`; or of both, `sizes.*[]`. Without a key before
                them, they are those of the body, `[]`, or of the object itself, `*`.
            make: returns the change of a field, given its scopes and keys.
            location: where the path is written within the change.
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
            change = Elements((), ELEMENT, depth, change)
        if text:
            path = self.attempt(partial(parse_path, text), *location)
            return path and Elements(path.scopes, path.keys, outermost, change)
        if not outermost:
            return Elements((), (), 0, change)
        return Whole(Elements((), BODY, outermost, change))

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
            named: each path, with the place where it is written within the change.
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


@dataclass(frozen=True, slots=True)
class ParameterContext(BuildContext):
    """The place of a change of a query parameter, or else of a header field."""

    header: bool

    def name(self, name: str, key: str) -> str:
        """Return a name, after recording what is wrong with it."""
        if not self.header:
            if not name:
                self.complain("must not be empty", key)
        elif not _NAME.match(name):
            self.complain("not the name of a header; write one like X-API-VERSION", key)
        elif name.lower().encode() in _OURS:
            self.complain("is written by the gateway itself; remove the change", key)
        return name

    def text(self, text: str, key: str) -> str:
        """Return a value, after recording what is wrong with it."""
        if self.header and not _TEXT.match(text):
            self.complain("a header holds printable ASCII only", key)
        return text
