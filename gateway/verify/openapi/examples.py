"""Generation of example bodies that conform to a schema, including unusual bodies."""

import warnings
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import msgspec

# Schemathesis is a maintained generator of bodies from OpenAPI schemas. hypothesis-jsonschema does
# not run on current Hypothesis, and polyfactory generates values from Python types, not from
# schemas.
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from gateway.conversion.field_path import pointer
from gateway.conversion.schema import Schema, definitions
from gateway.verify.openapi.json_schema import SHORT, narrowed
from gateway.verify.time_limit import check_time

_TRIES = 5_000
# The letters that replace other letters in smaller examples, in order of preference.
_PLAIN = "aA0"


def smallest(document: object, still: Callable[[object], bool]) -> object:
    """Return the smallest document that still fails; `still` is called up to 5,000 times."""
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
    """Return the JSON Pointers of the values on which a failure depends.

    `mended` gets a document in which null replaces one value.
    """
    return tuple(place for place, without in _without_one(document, "") if mended(without))


def _without_one(value: object, at: str) -> Iterator[tuple[str, object]]:
    """Yield copies of the document in which null replaces one value (or 0 replaces null)."""
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


class NoExamplesError(Exception):
    """No example can be generated from a schema. The message contains the reason."""


class Examples:
    """Generates examples, and caches them by schema.

    Args:
        end: the end of the time limit in monotonic seconds.
    """

    def __init__(self, count: int, start: int, end: float = inf) -> None:
        self._count = count
        self._start = start
        self._end = end
        self._known: dict[bytes, tuple[object, ...]] = {}

    def of(self, schema: Schema, longest: int = SHORT) -> tuple[object, ...]:
        """Return bodies that conform to a schema.

        Args:
            longest: the maximum number of elements of an array, unless the schema requires more.

        Raises:
            NoExamplesError: the schema contradicts itself, or the generator does not support it.
            OutOfTimeError: the time limit has passed.
        """
        text = msgspec.json.encode(narrowed(schema, longest))
        if text not in self._known:
            self._known[text] = self._generated(text)
        return self._known[text]

    def _generated(self, text: bytes) -> tuple[object, ...]:
        bodies: list[object] = []

        def collect(case: schemathesis.Case[Any]) -> None:
            check_time(self._end)
            bodies.append(_plain(case.body))

        # Hypothesis does not shrink examples here: each step would generate a new example, whereas
        # `smallest` checks a smaller document directly against the schema.
        chosen = settings(
            max_examples=self._count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                strategy = _strategy(msgspec.json.decode(text))
                seed(self._start)(chosen(given(strategy)(collect)))()
        except Exception as error:  # invalid schemas raise many kinds of errors
            raise NoExamplesError(str(error).partition("\n")[0]) from None
        return tuple(bodies)


def _plain(body: object) -> object:
    """Return a body with whole floats as integers, since JSON senders write `5`, not `5.0`."""
    match body:
        case dict():
            return {key: _plain(value) for key, value in body.items()}
        case list():
            return [_plain(value) for value in body]
        case float() if body.is_integer():
            return int(body)
        case None | bool() | int() | float():
            return body
        case str() if type(body) is str:
            return body
    raise ValueError(f"the generator made {type(body).__name__}, which JSON lacks")


def _strategy(body: Schema) -> SearchStrategy[schemathesis.Case[Any]]:
    # The generator creates only requests, so each schema is used as the body of a request.
    content = {"application/json": {"schema": {k: v for k, v in body.items() if k != "components"}}}
    document: dict[str, Any] = {
        "openapi": "3.1.1",
        "info": {"title": "examples", "version": "1"},
        "paths": {
            "/": {
                "post": {
                    "requestBody": {"required": True, "content": content},
                    "responses": {"200": {"description": "none"}},
                }
            }
        },
        "components": {"schemas": dict(definitions(body))},
    }
    return schemathesis.openapi.from_dict(document)["/"]["POST"].as_strategy()
