"""Excerpts of JSON that fit on one line and contain the relevant values."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from gateway.conversion.field_path import pointer

_WIDTH = 96
_CUT = "..."


def excerpt(body: bytes, field: str, values: Sequence[object], places: Collection[str] = ()) -> str:
    """Return a body on one line; a long body is shortened.

    A shortened body contains the paths to a field (a JSON Pointer with `*` for array indexes and
    undeclared keys), to `places` (JSON Pointers), and to all occurrences of `values`. Everything
    else is replaced by `...`.
    """
    whole = body.decode()
    if len(whole) <= _WIDTH:
        return whole
    shown = _Shown(tuple(field.split("/")), frozenset(places), values)
    kept, found = shown.kept(msgspec.json.decode(body), ())
    text = msgspec.json.encode(kept).decode() if found else whole
    return text if found or len(text) <= _WIDTH else f"{text[: _WIDTH - len(_CUT)]}{_CUT}"


def values_at(body: bytes, field: str) -> list[object]:
    return _values(msgspec.json.decode(body), field)


def _values(value: object, field: str) -> list[object]:
    if not field:
        return [] if isinstance(value, dict | list) else [value]
    _, step, *rest = field.split("/", 2)
    below = f"/{rest[0]}" if rest else ""
    if isinstance(value, list):
        return [found for element in value for found in _values(element, below)]
    if isinstance(value, dict):
        members = [
            inner for name, inner in value.items() if pointer(name) == f"/{step}" or step == "*"
        ]
        return [found for inner in members for found in _values(inner, below)]
    return []


@dataclass(frozen=True, slots=True)
class _Shown:
    field: tuple[str, ...]
    places: frozenset[str]
    values: Sequence[object]

    def kept(self, value: object, at: tuple[str | int, ...]) -> tuple[object, bool]:
        if isinstance(value, dict):
            parts = {name: self.kept(inner, (*at, name)) for name, inner in value.items()}
            shown = {name: inner for name, (inner, found) in parts.items() if found}
            if len(shown) < len(value) and shown:
                shown[_CUT] = _CUT
            return (shown, True) if shown else (_CUT, self._is_meant(at))
        if isinstance(value, list):
            elements = [self.kept(inner, (*at, index)) for index, inner in enumerate(value)]
            if any(found for _, found in elements):
                return [inner for inner, _ in elements], True
            return _CUT, self._is_meant(at)
        same = any(type(value) is type(other) and value == other for other in self.values)
        return value, same or self._is_meant(at)

    def _is_meant(self, at: tuple[str | int, ...]) -> bool:
        place = pointer(*at)
        steps = place.split("/")
        return place in self.places or (
            len(steps) == len(self.field)
            and all(wanted in ("*", step) for wanted, step in zip(self.field, steps, strict=True))
        )
