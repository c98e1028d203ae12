"""Shrinking: the smallest document that still fails in the same way."""

from collections.abc import Callable, Iterator

from gateway.conversion.field_path import pointer

_TRIES = 5_000
# The plainest letter comes first; one that is not among them is less plain than all.
_PLAIN = "aA0"


def smallest(document: object, still: Callable[[object], bool]) -> object:
    """Return the smallest document found by leaving parts of the given one out or shrinking them.

    Args:
        document: to begin with; `still` is true of it.
        still: whether a smaller document is still one to look for; called some thousand times.
    """
    tries = 0
    found = True
    while found:
        found = False
        for simpler in _simpler(document):
            tries += 1
            if tries > _TRIES:
                return document
            if still(simpler):
                document, found = simpler, True
                break
    return document


def decisive(document: object, mended: Callable[[object], bool]) -> tuple[str, ...]:
    """Return the places, as JSON Pointers, of the single values that a failure depends on.

    Args:
        document: that fails.
        mended: whether a document, with null in place of a value, does not fail any more.
    """
    return tuple(place for place, without in _without_one(document, "") if mended(without))


def _without_one(value: object, at: str) -> Iterator[tuple[str, object]]:
    """Yield the document once for each value in it, with null, or else 0, in its place."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            for place, without in _without_one(inner, at + pointer(name)):
                yield place, {**value, name: without}
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            for place, without in _without_one(inner, at + pointer(index)):
                yield place, [*value[:index], without, *value[index + 1 :]]
    else:
        yield at, 0 if value is None else None


def _simpler(value: object) -> Iterator[object]:
    """Yield documents that are one step simpler, the boldest steps first."""
    match value:
        case dict():
            for key in value:
                yield {other: inner for other, inner in value.items() if other != key}
            for key, inner in value.items():
                yield from ({**value, key: simpler} for simpler in _simpler(inner))
        case list():
            yield from _shorter(value)
            for index, inner in enumerate(value):
                before, after = value[:index], value[index + 1 :]
                yield from ([*before, simpler, *after] for simpler in _simpler(inner))
        case str():
            yield from _plainer(value)
        case bool() if value:
            yield False
        case int() | float():
            yield from _nearer_to_zero(value)


def _shorter(value: list[object]) -> Iterator[object]:
    half = len(value) // 2
    if half:
        yield value[:half]
        yield value[half:]
    yield from (value[:index] + value[index + 1 :] for index in range(len(value)))


def _plainer(value: str) -> Iterator[str]:
    if value:
        yield from dict.fromkeys((value[: len(value) // 2], value[1:], value[:-1]))
    for index, letter in enumerate(value):
        for plain in _PLAIN.partition(letter)[0]:
            yield value[:index] + plain + value[index + 1 :]


def _nearer_to_zero(value: float) -> Iterator[float]:
    whole = int(value)
    sign = 1 if value > 0 else -1
    for step in dict.fromkeys((0, sign, whole // 10, whole // 2, whole - sign, whole)):
        if (abs(step), step < 0) < (abs(value), value < 0):
            yield step
    if isinstance(value, float) and whole == value:
        yield whole
