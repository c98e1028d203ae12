"""What a change looks for in a body."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from gateway.conversion.changes.change_section import WHOLE, Upgrade
from gateway.conversion.field_path import FieldPath, parse_path, spell
from gateway.verify.openapi.body_fields import BodyFields, Presence

# The place of a group may be what no path of a field ends in, such as members of members.
_OBJECTS = re.compile(r"(?:\[\]|(?<!\\)\.\*)+\Z")
_LAST = re.compile(r"(?:\\.|[^.\\])+\Z", re.DOTALL)


class SoughtField(NamedTuple):
    """A field that a change looks for.

    Attributes:
        name: as gateway.yaml has it; of the members beside an object, their prefix and `*`.
        prefix: that of members beside an object; None for one field.
        but: the fields that begin so as well, and are no such members.
        anywhere: whether it is a key that may be at any place.
    """

    name: str
    prefix: str | None = None
    but: frozenset[str] = frozenset()
    anywhere: bool = False

    def presence(self, fields: BodyFields) -> Presence | None:
        """Return whether bodies may have it; None for the whole body, which is always there."""
        if self.anywhere:
            there = fields.has_anywhere(self.name)
            return Presence.DECLARED if there else Presence.UNDECLARED
        path = _path(self.name)
        if path is None:
            return None
        if self.prefix is None:
            return fields.look_up(path)
        return fields.look_up_prefixed(path, self.prefix, self.but)

    def assume(self, fields: BodyFields) -> None:
        """Let bodies have it."""
        path = _path(self.name)
        if path is not None and self.prefix is None and not self.anywhere:
            fields.assume(path)


def sought(upgrade: Upgrade, *, upwards: bool) -> Iterator[SoughtField]:
    """Yield the fields that a change looks for on the way to a version, each once."""
    nesting = upgrade.nesting
    if nesting is not None and nesting.newer == upwards:
        outer = _LAST.sub("", nesting.field)
        yield SoughtField(f"{outer}{nesting.prefix}*", nesting.prefix, nesting.but)
        yield from (SoughtField(f"{outer}{name}") for name in sorted(nesting.but))
        return
    if upwards:
        names = dict.fromkeys((*upgrade.takes, *upgrade.moves.values()))
    else:
        names = dict.fromkeys((*upgrade.makes, *upgrade.moves))
    if upgrade.count and WHOLE in (upgrade.moves if upwards else upgrade.moves.values()):
        names[upgrade.count] = None
    # Where its elements or members are looked for, the list or map is as well.
    holders = {name[:-2] for name in names if name.endswith(("[]", ".*"))}
    yield from (SoughtField(name) for name in names if name not in holders)
    if upgrade.rewriting is not None:
        for name in sorted(upgrade.rewriting.but):
            yield SoughtField(upgrade.rewriting.to_older(name) if upwards else name, anywhere=True)


class LostField(NamedTuple):
    """A field in the place that another gets, so that one of the two would be lost.

    Attributes:
        name: the field.
        source: the other one.
        target: what the other one becomes.
    """

    name: str
    source: str
    target: str


def lost(fields: BodyFields, upgrade: Upgrade, *, upwards: bool) -> Iterator[LostField]:
    """Yield the fields in whose place a change moves others, and which it does not take."""
    taken = upgrade.takes if upwards else upgrade.makes
    for newer, older in upgrade.moves.items():
        target, source = (newer, older) if upwards else (older, newer)
        to, way = _path(target), _path(source)
        if to is not None and way is not None and target not in taken:
            outer = target if way.keys[: len(to.keys)] == to.keys else _LAST.sub("", target)[:-1]
            for name in fields.in_place_of(to, way):
                yield LostField(f"{outer}.{spell(name)}" if outer else spell(name), source, target)


def _path(name: str) -> FieldPath | None:
    """Return the path of a field, or of what holds the objects of a group; None for the body."""
    inner = _OBJECTS.sub("", name)
    if inner in (WHOLE, "*"):
        return None
    with suppress(ValueError):
        return parse_path(name)
    return parse_path(inner)
