"""Checks from two schemas alone whether every document of the first is valid for the second.

The result may be "unknown". The caller then tests example documents.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from gateway.conversion.chain import BodyConversion
from gateway.conversion.field_path import pointer
from gateway.conversion.schema import (
    WIDE,
    WIDE_TYPES,
    Flat,
    Schema,
    SchemaImage,
    Schemas,
    UndecidedError,
    definitions,
    elements_of,
    field_of,
    properties_of,
    requires,
    rest_of,
    same,
    text_of,
    words_of,
)
from gateway.conversion.unfit import Unfit
from gateway.conversion.version_step import Direction


class Verdict(IntEnum):
    """The result of a check whether one schema fits another, from best to worst."""

    PROVED = 0
    UNKNOWN = 1
    FAILS = 2


class Fit(NamedTuple):
    """Whether one schema fits another, and the first difference if it does not.

    Attributes:
        keyword: The keyword of the other schema that documents may violate at this location.
        reason: The predicate of a sentence whose subject is the field, such as "may be null".
    """

    verdict: Verdict
    field: str = ""
    keyword: str = ""
    reason: str = ""


_PROVED, _UNKNOWN = Fit(Verdict.PROVED), Fit(Verdict.UNKNOWN)
# After this many comparisons of subschemas, the result is UNKNOWN.
_MANY = 20_000


class ConvertedSchema(NamedTuple):
    """The schema of documents after a conversion.

    `refusals` has the reasons why the conversion may refuse a document.
    """

    schemas: Schemas
    root: object
    refusals: list[str]


def convert_schema(conversion: BodyConversion | None, schema: Schema) -> ConvertedSchema:
    """Return the schema of documents after a conversion.

    Args:
        conversion: The conversion of the bodies, whose changes must read only the body. None if
            bodies are not converted.

    Raises:
        UndecidedError: The schema is too complex to be analysed.
    """
    image = SchemaImage(definitions(schema))
    made: object = {key: value for key, value in schema.items() if key != "components"}
    if conversion is None:
        return ConvertedSchema(image, made, [])
    upwards = conversion.direction is Direction.UP
    for link in conversion.links:
        for change in link.ordered(conversion.direction, conversion.of_request):
            effect = change.directed(upwards=upwards).effect_in(image)
            if change.whole:
                made = effect(made)  # type: ignore[arg-type]  # it holds any schema
            else:
                inside = partial(image.inside, scopes=change.scopes, effect=effect)
                keeps = change.unfit.of(conversion.of_request) is not Unfit.REFUSE
                with image.keeping(values=False) if keeps else nullcontext():
                    made = image.objects(made, inside, object())
    return ConvertedSchema(image, made, image.refusals)


def fits(
    given: ConvertedSchema,
    wanted: Schema,
    differs: Callable[[str, Flat, Flat], bool] = lambda *_: False,
) -> Fit:
    """Check whether all converted documents are valid for another schema.

    Args:
        differs: Given a location and the object schemas there, returns whether they must be tested
            with examples.
    """
    target = {key: value for key, value in wanted.items() if key != "components"}
    walk = _Walk(given.schemas, Schemas(definitions(wanted)), differs)
    try:
        if given.refusals or walk.is_empty(given.root):
            return _UNKNOWN
        return walk.fit(given.root, target, "")
    except (UndecidedError, RecursionError):
        return _UNKNOWN


class _Walk:
    def __init__(
        self, given: Schemas, wanted: Schemas, differs: Callable[[str, Flat, Flat], bool]
    ) -> None:
        self._given = given
        self._wanted = wanted
        self._differs = differs
        self._known: dict[tuple[bytes, bytes], Fit] = {}
        self._empty: dict[bytes, bool] = {}
        self._steps = 0

    def fit(self, given: object, wanted: object, at: str) -> Fit:
        if wanted is True or wanted == {}:
            return _PROVED
        key = text_of(given), text_of(wanted)
        if key in self._known:
            return self._known[key]
        self._steps += 1
        if self._steps > _MANY:
            raise UndecidedError("the schemas have too many locations")
        before = len(self._known)
        self._known[key] = _PROVED  # assumed for recursive references to the same two schemas
        found = self._fit(given, wanted, at)
        if found.verdict is not Verdict.PROVED:
            for later in list(self._known)[before:]:  # these results may rest on the assumption
                del self._known[later]
        self._known[key] = found
        return found

    def _fit(self, given: object, wanted: object, at: str) -> Fit:
        others = self._wanted.alternatives(wanted)
        return _worst(
            self._one(flat, others, at)
            for flat in self._given.alternatives(given)
            if not self._is_empty(flat)
        )

    def _one(self, flat: Flat, others: list[Flat], at: str) -> Fit:
        words = flat.get("enum")
        if words is not None and len(words) > 1:
            return _worst(self._one({**flat, "enum": [word]}, others, at) for word in words)
        meant = [one for one in others if _is_within(flat, one)]
        if not meant:
            return self._of_no_type(flat, others, at)
        found = [self._covered(flat, one, at) for one in meant]
        best = min(found, key=lambda one: one.verdict)
        # Several alternatives may together allow all values, although no single one does.
        return best if best.verdict is Verdict.PROVED or len(meant) == 1 else _UNKNOWN

    def _of_no_type(self, flat: Flat, others: list[Flat], at: str) -> Fit:
        near = {"number", "integer"}
        if flat["type"] in near and any(one["type"] in near for one in others):
            return _UNKNOWN if "enum" in flat else self._failure(flat, at, "type", "a fraction")
        return self._failure(flat, at, "type", _named(flat["type"]), _expected(others))

    def _failure(self, flat: Flat, at: str, keyword: str, found: str, expected: str = "") -> Fit:
        if flat.get(WIDE, 0) >= WIDE_TYPES or "allOf" in flat or not self._is_filled(flat):
            return _UNKNOWN
        what = f"expected {expected}, found {found}" if expected else f"may be {found}"
        return Fit(Verdict.FAILS, at, keyword, what)

    def _covered(self, flat: Flat, wanted: Flat, at: str) -> Fit:
        found = _worst(self._checks(flat, wanted, at))
        if WIDE in wanted and found.verdict is Verdict.PROVED:
            return _UNKNOWN
        if WIDE in flat and found.verdict is Verdict.FAILS and found.field == at:
            return _UNKNOWN
        return found

    def _checks(self, flat: Flat, wanted: Flat, at: str) -> Iterator[Fit]:
        if "enum" in wanted:
            yield self._among(flat, wanted["enum"], at)
        elif "enum" in flat:
            yield from self._of_word(flat, flat["enum"][0], wanted)
            return
        yield from self._bounds(flat, wanted, at)
        for key in wanted.keys() & _EQUAL:
            if key == "format" and wanted[key] in _NO_FORMATS:
                continue
            if key not in flat or not same(flat[key], wanted[key]):
                yield _UNKNOWN
        for opaque in wanted.get("allOf", ()):
            if not any(same(opaque, one) for one in flat.get("allOf", ())) or _refers(opaque):
                yield _UNKNOWN
        if flat["type"] == "object":
            yield from self._fields(flat, wanted, at)
        elif flat["type"] == "array":
            yield self._elements(flat, wanted, at)

    def _among(self, flat: Flat, words: list[Any], at: str) -> Fit:
        own = words_of(flat)
        if own is None:
            return self._failure(flat, at, "enum", "a value that is not listed")
        for word in own:
            if not any(same(word, one) for one in words):
                return self._failure(flat, at, "enum", f"{word!r}, which is not listed")
        return _PROVED

    @staticmethod
    def _of_word(flat: Flat, word: object, wanted: Flat) -> Iterator[Fit]:
        if isinstance(word, dict | list):
            yield _UNKNOWN
            return
        for key in wanted.keys() - {"type", WIDE}:
            if key == "format" and wanted[key] in _NO_FORMATS:
                continue
            check = _OF_WORD.get(key)
            yield _PROVED if check is not None and check(word, wanted[key]) else _UNKNOWN

    def _bounds(self, flat: Flat, wanted: Flat, at: str) -> Iterator[Fit]:
        for lower, others, upper in _BOUNDS:
            for key in others:
                if key in wanted and not _is_bounded(flat, key, wanted[key], upper=upper):
                    exact = not {"pattern", "format", "multipleOf"} & flat.keys()
                    reason = f"a value beyond the {key} of {wanted[key]}"
                    yield self._failure(flat, at, key, reason) if exact and lower else _UNKNOWN

    def _fields(self, flat: Flat, wanted: Flat, at: str) -> Iterator[Fit]:
        if self._differs(at, flat, wanted):
            yield _UNKNOWN
        given, rest = properties_of(flat), rest_of(wanted)
        names = (
            given.keys() if isinstance(rest, bool) else given.keys() | properties_of(wanted).keys()
        )
        declared = properties_of(wanted)
        for name in wanted.get("required", ()):
            if not requires(flat, name):
                there = at + pointer(name)
                if flat.get(WIDE) or "allOf" in flat or not self._is_filled(flat):
                    yield _UNKNOWN
                else:
                    yield Fit(Verdict.FAILS, there, "required", "is missing, but required")
        for name in (*names, *(one for one in declared if one not in names)):
            own = field_of(flat, name)
            if own is False or self.is_empty(own):
                continue
            if name in declared:
                yield self._softened(flat, name, self.fit(own, declared[name], at + pointer(name)))
            else:
                yield self._undeclared(own, wanted, at + pointer(name))
        more = rest_of(flat)
        if "additionalProperties" not in flat and _is_closed(wanted):
            yield _UNKNOWN  # the schema does not state whether the object may have other fields
        if more is not False:
            yield self._softened(flat, None, self._undeclared(more, wanted, f"{at}/*"))

    @staticmethod
    def _softened(flat: Flat, name: str | None, found: Fit) -> Fit:
        unsure = WIDE in flat or "allOf" in flat or name is None
        return _UNKNOWN if unsure and found.verdict is Verdict.FAILS else found

    def _undeclared(self, own: object, wanted: Flat, at: str) -> Fit:
        for key in ("additionalProperties", "unevaluatedProperties"):
            if key in wanted:
                if wanted[key] is False:
                    return _UNKNOWN
                return self.fit(own, wanted[key], at)
        return _UNKNOWN if "patternProperties" in wanted else _PROVED

    def _elements(self, flat: Flat, wanted: Flat, at: str) -> Fit:
        if "prefixItems" in wanted and not same(flat.get("prefixItems"), wanted["prefixItems"]):
            return _UNKNOWN
        own = elements_of(flat)
        if own is False or self.is_empty(own):
            return _PROVED
        found = self.fit(own, elements_of(wanted), f"{at}/*")
        if "prefixItems" in wanted:
            return _PROVED if found.verdict is Verdict.PROVED else _UNKNOWN
        return found

    def is_empty(self, schema: object) -> bool:
        """Return whether the bounds and the required fields of a schema exclude every value."""
        key = text_of(schema)
        if key not in self._empty:
            self._empty[key] = False  # provisional: the schema may be recursive
            self._empty[key] = all(map(self._is_empty, self._given.alternatives(schema)))
        return self._empty[key]

    def _is_empty(self, flat: Flat) -> bool:
        for lower, upper in _PAIRS:
            if lower in flat and upper in flat and flat[lower] > flat[upper]:
                return True
        return any(
            field_of(flat, name) is False or self.is_empty(field_of(flat, name))
            for name in flat.get("required", ())
        )

    def _is_filled(self, flat: Flat) -> bool:
        return not self._is_empty(flat)


def _worst(found: Iterable[Fit]) -> Fit:
    worst = _PROVED
    for one in found:
        if one.verdict > worst.verdict:
            worst = one
        if worst.verdict is Verdict.FAILS:
            break
    return worst


def _is_within(flat: Flat, other: Flat) -> bool:
    return flat["type"] == other["type"] or (flat["type"], other["type"]) == ("integer", "number")


def _is_closed(wanted: Flat) -> bool:
    return False in (wanted.get("additionalProperties"), wanted.get("unevaluatedProperties"))


def _refers(schema: object) -> bool:
    return b'"$ref"' in text_of(schema)


def _named(name: str) -> str:
    return name if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _expected(others: Iterable[Flat]) -> str:
    names = sorted({one["type"] for one in others}, key="null".__eq__)
    return " or ".join(map(_named, names)) or "nothing"


# Values of `format` that add no restriction to the type.
_NO_FORMATS = frozenset(
    {*("int32", "int64", "float", "double", "password", "byte", "binary", "decimal")}
)
# Keywords whose values are only compared for equality.
_EQUAL = frozenset(
    {
        *("format", "pattern", "multipleOf", "uniqueItems", "contains", "minContains"),
        *("maxContains", "patternProperties", "propertyNames", "dependentRequired"),
        *("dependentSchemas", "unevaluatedItems", "minProperties", "maxProperties"),
    }
)
_PAIRS = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum"))
_BOUNDS = (
    (True, ("minLength", "minItems", "minimum", "exclusiveMinimum"), False),
    (True, ("maxLength", "maxItems", "maximum", "exclusiveMaximum"), True),
)
_OTHER = {
    "minimum": "exclusiveMinimum",
    "maximum": "exclusiveMaximum",
    "exclusiveMinimum": "minimum",
    "exclusiveMaximum": "maximum",
}
_LEAST = frozenset({"minLength", "minItems"})


def _is_bounded(flat: Flat, key: str, bound: Any, *, upper: bool) -> bool:
    if key in _LEAST and not bound:
        return True
    beside = _OTHER.get(key, key)
    for own in (key, beside):
        if own not in flat:
            continue
        inside = flat[own] <= bound if upper else flat[own] >= bound
        equal = flat[own] == bound and own != key and key.startswith("exclusive")
        if inside and not equal:
            return True
    return False


def _is_number(check: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda word, bound: (
        not isinstance(word, int | float) or isinstance(word, bool) or check(word, bound)
    )


_OF_WORD: Mapping[str, Callable[[Any, Any], bool]] = {
    "minLength": lambda word, bound: not isinstance(word, str) or len(word) >= bound,
    "maxLength": lambda word, bound: not isinstance(word, str) or len(word) <= bound,
    "minimum": _is_number(lambda word, bound: word >= bound),
    "maximum": _is_number(lambda word, bound: word <= bound),
    "exclusiveMinimum": _is_number(lambda word, bound: word > bound),
    "exclusiveMaximum": _is_number(lambda word, bound: word < bound),
}
