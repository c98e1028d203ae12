"""Excerpts: an example on one line, cut so that the value that fails stays in it."""

import msgspec

from gateway.core.conversion.field_path import pointer
from gateway.verify.proof import Finding

_WIDTH = 96
_CUT = "..."


def excerpt(body: bytes, finding: Finding) -> str:
    """Return an example or what it was converted to: whole where it is short.

    Of a long one, what leads to the value that fails is left, and values that are equal to it; what
    else was there is `...`.
    """
    whole = body.decode()
    if len(whole) <= _WIDTH:
        return whole
    failing = _failing(finding)
    kept, found = _kept(msgspec.json.decode(body), "", finding.field, failing)
    text = msgspec.json.encode(kept).decode() if found else whole
    return text if found or len(text) <= _WIDTH else f"{text[: _WIDTH - len(_CUT)]}{_CUT}"


def _failing(finding: Finding) -> list[object]:
    """Return the values at the field that fails, in what was converted or else in the example."""
    body = finding.example if finding.converted is None else finding.converted
    return [] if body is None else _values(msgspec.json.decode(body), finding.field)


def _values(value: object, field: str) -> list[object]:
    if not field:
        return [] if isinstance(value, dict | list) else [value]
    _, step, *rest = field.split("/", 2)
    below = f"/{rest[0]}" if rest else ""
    if isinstance(value, list):
        return [found for element in value for found in _values(element, below)]
    if isinstance(value, dict):
        members = [inner for name, inner in value.items() if pointer(name) == f"/{step}"]
        return [found for inner in members for found in _values(inner, below)]
    return []


def _kept(value: object, at: str, field: str, failing: list[object]) -> tuple[object, bool]:
    """Return what is kept of a value, and whether it holds anything to show."""
    if isinstance(value, dict):
        parts = {
            name: _kept(inner, at + pointer(name), field, failing) for name, inner in value.items()
        }
        shown = {name: inner for name, (inner, found) in parts.items() if found}
        if len(shown) < len(value) and shown:
            shown[_CUT] = _CUT
        return (shown, True) if shown else (_CUT, at == field)
    if isinstance(value, list):
        elements = [_kept(inner, f"{at}/*", field, failing) for inner in value]
        if any(found for _, found in elements):
            return [inner for inner, _ in elements], True
        return _CUT, at == field
    same = any(type(value) is type(other) and value == other for other in failing)
    return value, same or at == field
