"""Kinds: what a field holds between two changes of it, and whether the second can read that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.config.changes import conversion_section as model
from gateway.config.changes.map_words import scalar, spelt
from gateway.config.shape import SectionModel
from gateway.core.conversion.document import kind
from gateway.core.conversion.values import Scalar


@dataclass(frozen=True, slots=True)
class Held:
    """Values that a field may have; null it may always be.

    Attributes:
        kinds: what JSON calls their types.
        words: all of them, where they can be told.
    """

    kinds: frozenset[str]
    words: frozenset[Scalar] | None = None

    def meets(self, other: "Held") -> bool:
        """Whether some value is among both."""
        if self.words is not None and other.words is not None:
            return bool(self.words & other.words)
        return bool(self.kinds & other.kinds)

    def __str__(self) -> str:
        """Say what they are, for an operator."""
        return " or ".join(sorted(map(spelt, self.words) if self.words else self.kinds))


def reads(config: SectionModel) -> Mapping[str, Held]:
    """Return what an upgrade by this change can read, of the fields that it is choosy about."""
    match config:
        case model.TypeConfig(field=field, older=older):
            return {field: _of(_TYPES[older])}
        case model.MapConfig(field=field, unknown="refuse", values=values, back=back) if (
            config.default is None or config.default.newer is None
        ):
            return {field: _words([*map(scalar, values.values()), *back])}
        case model.WrapConfig(field=field):
            return {field: _of("an array")}
        case model.JoinConfig(into=field):
            return {field: _of("a string")}
        case model.SplitConfig(into=parts):
            return dict.fromkeys(parts, _of("a string"))
        case _:
            return {}


def leaves(config: SectionModel) -> Mapping[str, Held]:
    """Return what an upgrade by this change leaves in fields, so far as that can be told."""
    match config:
        case model.TypeConfig(field=field, newer=newer):
            return {field: _of(_TYPES[newer])}
        case model.MapConfig(field=field, unknown="refuse", values=values, back=back):
            other = None if config.default is None else config.default.newer
            made = [
                *values,
                *map(scalar, back.values()),
                *([] if other is None else [scalar(other)]),
            ]
            return {field: _words(made)}
        case model.UnwrapConfig(field=field):
            return {field: _of("an array")}
        case model.JoinConfig(fields=parts):
            return dict.fromkeys(parts, _of("a string"))
        case model.SplitConfig(field=field):
            return {field: _of("a string")}
        case model.DefaultConfig(field=field, value=value) if value is not None:
            return {field: _of(kind(value))}
        case _:
            return {}


_TYPES = {
    "text": "a string",
    "number": "a number",
    "integer": "a number",
    "boolean": "a boolean",
}


def _of(name: str) -> Held:
    return Held(frozenset({name}))


def _words(words: Iterable[Scalar]) -> Held:
    found = frozenset(words)
    return Held(frozenset(map(kind, found)), found)
