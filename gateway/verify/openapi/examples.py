"""Generation of example bodies that conform to a schema, including unusual bodies."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from math import inf
from random import Random
from typing import Any

import msgspec

# Schemathesis is a maintained generator of bodies from OpenAPI schemas. hypothesis-jsonschema does
# not run on current Hypothesis, and polyfactory generates values from Python types, not from
# schemas.
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from gateway.conversion.field_path import pointer
from gateway.conversion.schema import (
    Flat,
    Schema,
    Schemas,
    UndecidedError,
    definitions,
    properties_of,
    requires,
    rest_of,
    text_of,
    without_components,
)
from gateway.verify.openapi.json_schema import SHORT, narrowed
from gateway.verify.openapi.validation import Validator
from gateway.verify.time_limit import check_time

_TRIES = 5_000
# If some bodies of a schema were composed, the library generates this fraction of the usual number.
_SUPPLEMENT = 10
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
    """Generates examples.

    Bodies are composed here, since the generator of the library takes up to 80 ms for an object
    with many components. It generates only values with a pattern or format, once for equal schemas,
    and whole bodies with keywords that are not composed.

    Args:
        end: the end of the time limit in monotonic seconds.
    """

    def __init__(self, count: int, start: int, end: float = inf) -> None:
        self._count = count
        self._start = start
        self._end = end
        self._values: dict[tuple[bytes, int], Sequence[object]] = {}

    def of(self, schema: Schema, longest: int = SHORT) -> Iterator[object]:
        """Yield bodies that conform to a schema.

        The first body has only the required fields, the second has all fields of a small schema.

        Args:
            longest: the maximum number of elements of an array, unless the schema requires more.

        Raises:
            NoExamplesError: the schema contradicts itself, or the generator does not support it.
            OutOfTimeError: the time limit has passed.
        """
        schema = narrowed(schema, longest)
        validator, composer = Validator(schema), _Composer(schema, self._start, self.values)
        found: set[bytes] = set()
        tries = allowed = 0
        while len(found) < self._count and tries < 3 * self._count:
            check_time(self._end)
            tries += 1
            try:
                body = composer.body(is_small=tries == 1, room=_ROOM if tries == 2 else 0)
            except (_NotComposedError, NoExamplesError):
                break
            if validator.allows(body):
                allowed += 1
                if (text := msgspec.json.encode(body)) not in found:
                    found.add(text)
                    yield body
        if allowed < tries / 4:  # few values conform to keywords that the composer ignores
            # The library takes up to half a second for a value of a union of large objects.
            count = -(-self._count // _SUPPLEMENT) if found else self._count
            yield from self._generated(msgspec.json.encode(schema), count)

    def values(self, text: bytes) -> Sequence[object]:
        """Return values of a schema, given as JSON, that the library has generated."""
        return self._generated(text, self._count)

    def _generated(self, text: bytes, count: int) -> Sequence[object]:
        if (text, count) not in self._values:
            self._values[text, count] = self._generate(text, count)
        return self._values[text, count]

    def _generate(self, text: bytes, count: int) -> Sequence[object]:
        bodies: list[object] = []

        def collect(case: schemathesis.Case[Any]) -> None:
            check_time(self._end)
            bodies.append(_plain(case.body))

        # Hypothesis does not shrink examples here: each step would generate a new example, whereas
        # `smallest` checks a smaller document directly against the schema.
        chosen = settings(
            max_examples=count,
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
        return bodies


class _NotComposedError(Exception):
    """A schema is too complex or too deep for the composer."""


class _Composer:
    """Composes objects and arrays of a schema at random; their other keywords are not tested."""

    def __init__(
        self, schema: Schema, start: int, values: Callable[[bytes], Sequence[object]]
    ) -> None:
        self._root = without_components(schema)
        self._schemas = Schemas(definitions(schema))
        self._values = values
        self._random = Random(start)  # noqa: S311  # no secret
        self._is_small = False
        self._room = 0.0

    def body(self, *, is_small: bool, room: float = 0) -> object:
        """Return a body with all optional fields until it has about `room` values."""
        self._is_small, self._room = is_small, room
        return self._value(self._root, 0)

    def _value(self, schema: object, depth: int) -> object:
        try:
            flats = self._schemas.alternatives(schema)
        except (UndecidedError, RecursionError):
            raise _NotComposedError from None
        if depth > _DEEP:
            flats = [one for one in flats if one["type"] not in ("object", "array")] or flats
        if not flats or depth > _DEEPEST:
            raise _NotComposedError
        flat = flats[0] if self._is_small else self._random.choice(flats)
        if "enum" in flat:
            words: list[object] = flat["enum"]
            return words[0] if self._is_small else self._random.choice(words)
        match flat["type"]:
            case "object":
                return self._object(flat, depth)
            case "array":
                return self._array(flat, depth)
            case "null":
                return None
            case "boolean":
                return self._random.random() < 0.5
        if flat.keys() & _OF_LIBRARY:
            values = self._values(text_of(flat))
            if not values:
                raise _NotComposedError
            return values[0] if self._is_small else self._random.choice(values)
        return self._text(flat) if flat["type"] == "string" else self._number(flat)

    def _text(self, flat: Flat) -> str:
        least: int = flat.get("minLength", 0)
        most = max(least, min(flat.get("maxLength", _LONGEST), least + _LONGEST))
        length = least if self._is_small else self._random.randint(least, most)
        letters = _PLAIN if self._is_small else _LETTERS
        return "".join(self._random.choices(letters, k=length))

    def _number(self, flat: Flat) -> float:
        low: float = max(flat.get("minimum", -_FAR), flat.get("exclusiveMinimum", -_FAR - 1) + 1)
        high: float = min(flat.get("maximum", _FAR), flat.get("exclusiveMaximum", _FAR + 1) - 1)
        high = max(low, high)
        found = min(max(0, low), high)
        if not self._is_small:
            found = self._random.choice([found, low, high, self._random.uniform(low, high)])
        # JSON senders write `5`, not `5.0`.
        is_whole = flat["type"] == "integer" or found == int(found)
        return math.ceil(found) if is_whole else found

    def _object(self, flat: Flat, depth: int) -> dict[str, object]:
        made: dict[str, object] = {}
        properties = properties_of(flat)
        room, share = self._room, self._room / max(len(properties), 1)
        chance = 0.0 if self._is_small else 1.0 if share >= 1 else 0.7 ** (depth + 1)
        for name, schema in properties.items():
            if requires(flat, name) or self._random.random() < chance:
                self._room = share
                made[name] = self._value(schema, depth + 1)
        self._room = room
        rest = rest_of(flat)
        needed = [name for name in flat.get("required", ()) if name not in made]
        more = 0 if self._is_small or rest is False else self._random.randrange(5)
        least = flat.get("minProperties", 0) - len(made) - len(needed)
        needed += [self._text({"minLength": 1}) for _ in range(max(more, least))]
        for name in needed if rest is not False else ():
            made[name] = self._value(rest, depth + 1)
        return {name: made[name] for name in sorted(made)}

    def _array(self, flat: Flat, depth: int) -> list[object]:
        least: int = flat.get("minItems", 0)
        if "contains" in flat:
            least = max(least, flat.get("minContains", 1))
        most = max(least, flat.get("maxItems", SHORT))
        is_short = self._is_small or depth > _DEEP
        length = least if is_short else self._random.randint(least, most)
        if self._room >= 1:
            length = max(least, min(1, most))
        firsts = flat.get("prefixItems", ())
        items = flat.get("items", flat.get("unevaluatedItems", True))
        if "contains" in flat:
            items = flat["contains"]
        schemas = [*firsts[:length], *[items] * (length - len(firsts))]
        return [self._value(schema, depth + 1) for schema in schemas]


# From the first depth on, values are as small as possible; beyond the second, there are none.
_DEEP, _DEEPEST = 8, 40
# The number of values in a body with all optional fields.
_ROOM = 1000
# The keywords of strings and numbers whose values the library generates.
_OF_LIBRARY = {"pattern", "format", "multipleOf", "allOf"}
# Letters that conversions, forms and paths treat differently, the longest text and number.
_LETTERS = f"{_PLAIN}bzZ19 -_.,:;/?&=+%#\"'\\[]{{}}<>\t\n\x7f\xe9\u4f60\U0001f600"
_LONGEST, _FAR = 12, 2**53


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
    content = {"application/json": {"schema": without_components(body)}}
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
