"""What a change looks for in the shape of a body, and the shape that it leaves."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from gateway.conversion.changes.change_section import WHOLE, Upgrade
from gateway.conversion.field_path import FieldPath, parse_path, spell
from gateway.verify.openapi.body_shape import BodyShape
from gateway.verify.openapi.field_shape import FieldShape, NameRewriting, Presence

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

    def presence(self, shape: BodyShape) -> Presence | None:
        """Return whether bodies may have it; None for the whole body, which is always there."""
        if self.anywhere:
            there = shape.has_anywhere(self.name)
            return Presence.DECLARED if there else Presence.UNDECLARED
        path = _path(self.name)
        if path is None:
            return None
        if self.prefix is None:
            return shape.look_up(path)
        return shape.look_up_prefixed(path, self.prefix, self.but)


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


def lost(shape: BodyShape, upgrade: Upgrade, *, upwards: bool) -> Iterator[LostField]:
    """Yield the fields in whose place a change moves others, and which it does not take."""
    taken = upgrade.takes if upwards else upgrade.makes
    for newer, older in upgrade.moves.items():
        target, source = (newer, older) if upwards else (older, newer)
        to, way = _path(target), _path(source)
        if to is not None and way is not None and target not in taken:
            outer = target if way.keys[: len(to.keys)] == to.keys else _LAST.sub("", target)[:-1]
            for name in shape.in_place_of(to, way):
                yield LostField(f"{outer}.{spell(name)}" if outer else spell(name), source, target)


def changed_shape(shape: BodyShape, upgrade: Upgrade, *, upwards: bool) -> BodyShape:
    """Return the shape that a change leaves; a value that is not only moved may be anything."""
    taken, made, moves = upgrade.takes, upgrade.makes, list(upgrade.moves.items())
    if not upwards:
        taken, made = made, taken
        moves = [(source, target) for target, source in moves]
    if upgrade.nesting is not None:
        _nest(shape, upgrade, upwards=upwards)
        return shape
    if upgrade.rewriting is not None:
        field, to_newer, to_older, but = upgrade.rewriting
        one = NameRewriting(to_newer, frozenset(map(to_older, but)))
        shape.rewrite(_path(field), one if upwards else NameRewriting(to_older, but))
        return shape
    moved = {
        target: shape.body if (path := _path(source)) is None else shape.find(path)
        for target, source in moves
    }
    paths = [_path(name) for name in taken]
    if None in paths:  # a change of the whole body
        wraps = WHOLE not in moved and any(source == WHOLE for _, source in moves)
        made = (*made, upgrade.count) if wraps and upgrade.count else made
        shape = BodyShape(moved.pop(WHOLE, FieldShape(bare=wraps)))
    for path in paths:
        if path is not None:
            shape.take(path)
    names = (*made, *(name for name in moved if name not in made))
    for name in names:
        if (path := _path(name)) is not None:
            shape.put(path, moved.get(name, _made(name, names)))
    return shape


def _made(name: str, others: tuple[str, ...]) -> FieldShape:
    """Return the shape of what a change makes, by what it makes in it."""
    if f"{name}[]" in others and not name.endswith("[]"):
        return FieldShape([{"type": "array"}])
    return FieldShape(bare=any(other.startswith(f"{name}.") for other in others))


def _nest(shape: BodyShape, upgrade: Upgrade, *, upwards: bool) -> None:
    nesting = upgrade.nesting
    assert nesting is not None
    path = _path(nesting.field)
    assert path is not None
    if nesting.newer == upwards:
        shape.gather(path, nesting.prefix, nesting.but)
    else:
        shape.scatter(path, nesting.prefix)


def _path(name: str) -> FieldPath | None:
    """Return the path of a field, or of what holds the objects of a group; None for the body."""
    inner = _OBJECTS.sub("", name)
    if inner in (WHOLE, "*"):
        return None
    with suppress(ValueError):
        return parse_path(name)
    return parse_path(inner)
