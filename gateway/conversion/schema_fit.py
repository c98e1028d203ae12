"""Checks whether every document of one schema is valid for another, by the schemas alone.

The result may be "unknown". The caller then tests example documents.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from gateway.conversion.chain import BodyConversion
from gateway.conversion.document import same
from gateway.conversion.field_path import pointer
from gateway.conversion.schema import (
    PLACE,
    WIDE,
    WIDE_TYPES,
    Flat,
    Schema,
    SchemaImage,
    Schemas,
    SchemaUnion,
    UndecidedError,
    definitions,
    elements_of,
    field_of,
    properties_of,
    requires,
    rest_of,
    text_of,
    without_components,
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
    """Whether one schema fits another, or a difference if it does not.

    Attributes:
        field: The location of the difference, a JSON Pointer with `*` for elements and entries.
        keyword: The keyword of the other schema that documents may violate at this location, `lost`
            for a field of the other schema that documents never have, or `ignored` for a field that
            the other schema lacks.
        reason: The predicate of a sentence whose subject is the field, such as "may be null".
        inner: The comparison of the two schemas at the location, if the difference is inside them.
        is_unsure: Whether documents may be valid despite the differences inside, since the two
            schemas are alternatives, and others may allow or exclude the same documents.
    """

    verdict: Verdict
    field: str = ""
    keyword: str = ""
    reason: str = ""
    inner: "_Comparison | None" = None
    is_unsure: bool = False


_PROVED, _UNKNOWN = Fit(Verdict.PROVED), Fit(Verdict.UNKNOWN)


class Difference(NamedTuple):
    """A place where values of one schema may violate another schema.

    Attributes:
        key: The identity of the two schemas and of the difference between them, which may occur in
            many messages. None if the conversion may refuse documents.
        at: The location of `given` and `wanted`, the two schemas that differ.
        within: The two unions that contain `given` and `wanted`, if only values that the first
            union allows and the second one excludes are differences; otherwise None.
    """

    fit: Fit
    key: object
    at: str
    given: object
    wanted: object
    within: tuple[object, object] | None = None


@dataclass(slots=True, eq=False)
class _Comparison:
    """The comparison of two schemas. It is repeated if a comparison on which it depends changes."""

    given: object
    wanted: object
    named: frozenset[str]
    verdict: Verdict = Verdict.PROVED
    found: tuple[Fit, ...] = ()
    dependents: dict["_Comparison", None] = field(default_factory=dict)
    is_waiting: bool = True


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
    made: object = without_components(schema)
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


class SchemaComparer:
    """Compares schemas of one document with schemas of another document, each pair once.

    A recursive pair is first assumed to fit. If a comparison fails, those that depend on it are
    repeated, until no result changes.

    Args:
        absent: The difference to report for fields that only one of two object schemas declares:
            `lost` if only the other schema has them, and `ignored` if only the first one has them.
            Empty to report none.
        proceed: Called before each comparison; may raise an error to stop.
    """

    def __init__(
        self,
        given: Schemas,
        wanted: Schemas,
        absent: str = "",
        proceed: Callable[[], None] = lambda: None,
    ) -> None:
        self._proceed = proceed
        self._given = given
        self._wanted = wanted
        self._absent = absent
        self._known: dict[tuple[bytes, bytes, frozenset[str]], _Comparison] = {}
        self._waiting: deque[_Comparison] = deque()
        self._running: _Comparison | None = None
        self._empty: dict[bytes, bool] = {}
        self._equal: dict[tuple[bytes, bytes], bool] = {}
        self._texts: dict[int, tuple[object, bytes]] = {}

    def differences(
        self, given: ConvertedSchema, wanted: Schema, named: Iterable[str] = ()
    ) -> list[Difference]:
        """Return the places where converted documents may be invalid for another schema.

        Args:
            named: JSON Pointers of the fields whose absence is not reported.
        """
        root = without_components(wanted)
        at_elements = (f"{each}{name}" for name in named for each in ("", "/*", "/*/*"))
        top = self._comparison(given.root, root, frozenset(at_elements))
        try:
            undecided = bool(given.refusals) or self.is_empty(given.root)
        except (UndecidedError, RecursionError):
            undecided = True
        if undecided:
            return [Difference(_UNKNOWN, None, "", given.root, root)]
        while self._waiting:
            self._proceed()
            one = self._waiting.pop()
            one.is_waiting = False
            self._running = one
            found = tuple(self._found(one))
            verdict = _worst(found)
            if verdict > one.verdict:
                one.verdict = verdict
                for other in one.dependents:
                    if not other.is_waiting:
                        other.is_waiting = True
                        self._waiting.appendleft(other)
            one.found = found
        return list(_differences(top))

    def _found(self, one: _Comparison) -> Iterator[Fit]:
        try:
            if self._is_same(one.given, one.wanted):
                return
            found = list(self._compared(one))
            if any(fit.inner is None for fit in found) and self._equals(one.given, one.wanted):
                return
            yield from found
        except (UndecidedError, RecursionError):
            if not self._equals(one.given, one.wanted):
                yield _UNKNOWN

    def _is_same(self, given: object, wanted: object) -> bool:
        if wanted is True or wanted == {}:
            return True
        text = self._text(given)
        if text != self._text(wanted) or b'"x-' in text:
            return False
        return self._given.components is self._wanted.components or b'"$ref"' not in text

    def _text(self, schema: object) -> bytes:
        held, text = self._texts.get(id(schema), (None, b""))
        if held is not schema or not text:
            text = text_of(schema)
            self._texts[id(schema)] = schema, text
        return text

    def _equals(self, one: object, other: object) -> bool:
        """Return whether two schemas are equal, apart from the names and places of components."""
        assumed: set[tuple[bytes, bytes]] = set()
        key = self._text(one), self._text(other)
        if key not in self._equal:
            self._equal[key] = self._is_equal(one, other, assumed)
            if self._equal[key]:
                self._equal |= dict.fromkeys(assumed, True)
        return self._equal[key]

    def _is_equal(self, one: object, other: object, assumed: set[tuple[bytes, bytes]]) -> bool:
        if _is_reference(one) or _is_reference(other):
            key = self._text(one), self._text(other)
            if (known := self._equal.get(key)) is not None:
                return known
            if key in assumed:
                return True
            assumed.add(key)
            mine, theirs = self._given.target(one), self._wanted.target(other)
            return self._is_equal(mine, theirs, assumed)
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(
                sorted(map(text_of, one[key])) == sorted(map(text_of, other[key]))
                if key in ("required", "enum")
                else self._is_equal(one[key], other[key], assumed)
                for key in one
            )
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(
                self._is_equal(mine, theirs, assumed)
                for mine, theirs in zip(one, other, strict=True)
            )
        return same(one, other)

    def _comparison(self, given: object, wanted: object, named: frozenset[str]) -> _Comparison:
        key = self._text(given), self._text(wanted), named
        if key not in self._known:
            self._known[key] = _Comparison(given, wanted, named)
            self._waiting.append(self._known[key])
        return self._known[key]

    def _inner(self, given: object, wanted: object, at: str) -> Fit:
        """Compare the schemas of a field or of elements."""
        if wanted is True or wanted == {}:
            return _PROVED
        assert self._running is not None
        named = self._running.named
        if named:
            named = frozenset(one[len(at) :] for one in named if one.startswith(f"{at}/"))
        inner = self._comparison(given, wanted, named)
        inner.dependents[self._running] = None
        return Fit(inner.verdict, at, inner=inner)

    def _compared(self, one: _Comparison) -> Iterator[Fit]:
        """Compare each alternative with its counterpart, or with all others if it has none.

        A difference between counterparts is unsure if another wanted alternative may allow the
        value, or if another given alternative of `oneOf` may exclude it.
        """
        mine, theirs = self._given.as_union(one.given), self._wanted.as_union(one.wanted)
        flats = [self._filled(member) for member in mine.members]
        others = [self._wanted.alternatives(member) for member in theirs.members]
        every = [*chain(*others)]
        pairs = self._counterparts(mine, theirs)
        overlaps = mine.is_exclusive and any(map(_is_wide, self._given.alternatives(one.given)))
        for index, own in enumerate(flats):
            if not own:
                continue
            unsure, pair = _UNKNOWN, pairs.get(index)
            if pair is not None:
                rest = [each for at, some in enumerate(others) if at != pair for each in some]
                inner = self._inner(mine.members[index], theirs.members[pair], "")
                is_sure = not overlaps and not any(self._possible(flat, rest) for flat in own)
                if is_sure or inner.verdict is Verdict.PROVED:
                    yield inner
                    continue
                unsure = inner._replace(verdict=Verdict.UNKNOWN, is_unsure=True)
            found = [
                fit
                for flat in own
                for fit in self._alternative(flat, every, unsure, is_sure=not overlaps)
            ]
            yield from found
            if pair is not None and unsure not in found:
                yield from self._absences(own, others[pair], one.named)
        if self._excludes_more(one, mine, theirs, pairs):
            yield _UNKNOWN
        loose = [*chain(*(own for at, own in enumerate(flats) if at not in pairs))]
        free = [*chain(*(each for at, each in enumerate(others) if at not in pairs.values()))]
        if self._absent == "lost":
            yield from self._absences([*chain(*flats)], free, one.named)
        else:
            yield from self._absences(loose, every, one.named)

    def _filled(self, schema: object) -> list[Flat]:
        return [flat for flat in self._given.alternatives(schema) if not self._is_empty(flat)]

    def _excludes_more(
        self, one: _Comparison, mine: SchemaUnion, theirs: SchemaUnion, pairs: Mapping[int, int]
    ) -> bool:
        """Return whether wanted alternatives of `oneOf` may exclude what the given ones allow.

        They exclude values that fit several of them. A given `oneOf` has excluded these values, if
        each wanted alternative allows only values that its counterpart allows too.
        """
        overlap = theirs.is_exclusive and any(map(_is_wide, self._wanted.alternatives(one.wanted)))
        if not overlap:
            return False
        if not mine.is_exclusive or len(pairs) < len(theirs.members):
            return True
        wanted_schemas = _OpenSchemas(self._wanted.components)
        mirrored = SchemaComparer(wanted_schemas, self._given, proceed=self._proceed)
        for index, other in pairs.items():
            given, wanted = mine.members[index], theirs.members[other]
            back = ConvertedSchema(wanted_schemas, wanted, [])
            if not isinstance(given, dict) or mirrored.differences(back, given):
                return True
        return False

    def _counterparts(self, mine: SchemaUnion, theirs: SchemaUnion) -> dict[int, int]:
        """Return the indexes of alternatives, and of the obvious counterpart of each.

        Counterparts share values of a discriminating property, the name, or most of their
        properties.
        """
        if len(mine.members) == len(theirs.members) == 1:
            return {}
        found = [
            (likeness, index, other)
            for index, one in enumerate(_traits(self._given, mine))
            for other, each in enumerate(_traits(self._wanted, theirs))
            if (likeness := _likeness(one, each)) is not None
        ]
        pairs: dict[int, int] = {}
        for _, index, other in sorted(found, key=lambda one: one[0], reverse=True):
            if index not in pairs and other not in pairs.values():
                pairs[index] = other
        return pairs

    def _absences(
        self, flats: Sequence[Flat], others: Sequence[Flat], named: frozenset[str]
    ) -> Iterator[Fit]:
        mine = [flat for flat in flats if flat["type"] == "object"]
        theirs = [flat for flat in others if flat["type"] == "object"]
        if not (self._absent and mine and theirs):
            return
        if self._absent == "lost":
            needed = {name for flat in theirs for name in flat.get("required", ())}
            names = {name for flat in theirs for name in properties_of(flat)} - needed
            absent = (name for name in names if all(field_of(f, name) is False for f in mine))
            found = [name for name in absent if pointer(name) not in named]
        elif any(rest_of(flat) is not False or _is_closed(flat) for flat in theirs):
            found = []
        else:
            known = {name for flat in theirs for name in flat.get("properties", {})}
            own = {name: field_of(flat, name) for flat in mine for name in properties_of(flat)}
            found = [n for n in own.keys() - known if not self.is_empty(own[n])]
            if any(rest_of(flat) is not False for flat in mine):
                yield Fit(Verdict.FAILS, "/*", self._absent)
        for name in sorted(found):
            yield Fit(Verdict.FAILS, pointer(name), self._absent)

    def _alternative(
        self, flat: Flat, others: Sequence[Flat], unsure: Fit, *, is_sure: bool
    ) -> Iterator[Fit]:
        words = flat.get("enum")
        if words is not None and len(words) > 1:
            for word in words:
                one = {**flat, "enum": [word]}
                yield from self._alternative(one, others, unsure, is_sure=is_sure)
            return
        meant = [one for one in others if _is_within(flat, one)]
        if not meant:
            yield self._of_no_type(flat, others)
            return
        possible = self._possible(flat, meant)
        found = [list(self._covered(flat, one)) for one in possible or meant]
        best = min(found, key=lambda some: (_worst(some), len(some)))
        if len(possible) <= 1 and is_sure:
            yield from best
        elif best:
            # Several alternatives may together allow all values, even if no single one does.
            yield unsure

    def _possible(self, flat: Flat, others: Iterable[Flat]) -> list[Flat]:
        return [one for one in others if _is_within(flat, one) and not self._excludes(flat, one)]

    def _excludes(self, flat: Flat, wanted: Flat) -> bool:
        """Return whether `wanted` excludes every object of `flat`.

        It does so by a required field that these objects lack, or whose enums share no value.
        """
        if flat["type"] != "object":
            return False
        for name in wanted.get("required", ()):
            own, other = field_of(flat, name), properties_of(wanted).get(name)
            if own is False:
                return True
            some, others = self._given.words(own), self._wanted.words(other)
            shared = any(same(word, each) for word in some or () for each in others or ())
            if requires(flat, name) and some and others and not shared:
                return True
        return False

    def _of_no_type(self, flat: Flat, others: Sequence[Flat]) -> Fit:
        near = {"number", "integer"}
        if flat["type"] in near and any(one["type"] in near for one in others):
            return _UNKNOWN if "enum" in flat else self._failure(flat, "", "type", "a fraction")
        return self._failure(flat, "", "type", _named(flat["type"]), _expected(others))

    def _failure(self, flat: Flat, at: str, keyword: str, found: str, expected: str = "") -> Fit:
        if flat.get(WIDE, 0) >= WIDE_TYPES or "allOf" in flat or not self._is_filled(flat):
            return _UNKNOWN
        what = f"expected {expected}, found {found}" if expected else f"may be {found}"
        return Fit(Verdict.FAILS, at, keyword, what)

    def _covered(self, flat: Flat, wanted: Flat) -> Iterator[Fit]:
        found = [fit for fit in self._checks(flat, wanted, "") if fit.verdict > Verdict.PROVED]
        for fit in found:
            unsure = WIDE in flat and fit.verdict is Verdict.FAILS and not fit.field
            yield _UNKNOWN if unsure else fit
        if WIDE in wanted and not found:
            yield _UNKNOWN

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
        given, rest = properties_of(flat), rest_of(wanted)
        names = (
            given.keys() if isinstance(rest, bool) else given.keys() | properties_of(wanted).keys()
        )
        declared = properties_of(wanted)
        for name in wanted.get("required", ()):
            if not requires(flat, name):
                there = at + pointer(name)
                if flat.get(WIDE) or "allOf" in flat or not self._is_filled(flat):
                    yield Fit(Verdict.UNKNOWN, there, "required")
                else:
                    yield Fit(Verdict.FAILS, there, "required", "is missing, but required")
        for name in (*names, *(one for one in declared if one not in names)):
            own = field_of(flat, name)
            if own is False or self.is_empty(own):
                continue
            if name in declared:
                inner = self._inner(own, declared[name], at + pointer(name))
                yield self._softened(flat, name, inner)
            else:
                yield self._undeclared(own, wanted, at + pointer(name))
        more = rest_of(flat)
        if more is not False:
            yield self._softened(flat, None, self._undeclared(more, wanted, f"{at}/*"))

    @staticmethod
    def _softened(flat: Flat, name: str | None, found: Fit) -> Fit:
        unsure = WIDE in flat or "allOf" in flat or name is None
        unsure = unsure and found.verdict is Verdict.FAILS
        return found._replace(verdict=Verdict.UNKNOWN) if unsure else found

    def _undeclared(self, own: object, wanted: Flat, at: str) -> Fit:
        for key in ("additionalProperties", "unevaluatedProperties"):
            if key in wanted:
                if wanted[key] is False:
                    reason = "is not declared, and no other fields are allowed"
                    verdict = Verdict.UNKNOWN if "allOf" in wanted else Verdict.FAILS
                    return Fit(verdict, at, key, reason)
                return self._inner(own, wanted[key], at)
        return _UNKNOWN if "patternProperties" in wanted else _PROVED

    def _elements(self, flat: Flat, wanted: Flat, at: str) -> Fit:
        if "prefixItems" in wanted and not same(flat.get("prefixItems"), wanted["prefixItems"]):
            return _UNKNOWN
        own = elements_of(flat)
        if own is False or self.is_empty(own):
            return _PROVED
        found = self._inner(own, elements_of(wanted), f"{at}/*")
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


class _OpenSchemas(Schemas):
    """Schemas whose objects may have undeclared fields; others assume that senders add none."""

    def alternatives(self, schema: object) -> list[Flat]:
        found = super().alternatives(schema)
        return [
            {**flat, "additionalProperties": True}
            if flat["type"] == "object" and not _FREE & flat.keys()
            else flat
            for flat in found
        ]


_FREE = frozenset({"additionalProperties", "unevaluatedProperties"})


def _differences(top: _Comparison) -> Iterator[Difference]:
    """Yield each difference inside a comparison once, at its shortest location."""
    known, level = {(top, False)}, deque([(top, "", False)])
    while level:
        one, at, is_unsure = level.popleft()
        for fit in dict.fromkeys(one.found):
            inner, place = fit.inner, at + fit.field
            if fit.verdict is Verdict.PROVED:
                continue
            if inner is None:
                # These fields are differences even if the document is valid.
                if not is_unsure or fit.keyword in _ABSENT:
                    key = (one, fit.field, fit.keyword)
                    yield Difference(fit._replace(field=place), key, at, one.given, one.wanted)
                continue
            if fit.is_unsure and not is_unsure:
                within = one.given, one.wanted
                unsure = Fit(fit.verdict, place)
                yield Difference(unsure, (one, inner), place, inner.given, inner.wanted, within)
            below = is_unsure or fit.is_unsure
            if known.isdisjoint({(inner, below), (inner, False)}):
                known.add((inner, below))
                level.append((inner, place, below))


_ABSENT = frozenset({"lost", "ignored"})


class _Traits(NamedTuple):
    """What makes an alternative recognizable.

    `words` has the values in `enum` or `const` of each property, or of the value itself at "".
    """

    reference: object
    types: frozenset[str]
    names: frozenset[str]
    words: Mapping[str, frozenset[bytes]]


def _traits(schemas: Schemas, union: SchemaUnion) -> list[_Traits]:
    return [_traits_of(schemas, member, union.discriminator) for member in union.members]


def _traits_of(schemas: Schemas, member: object, discriminator: Mapping[str, Any]) -> _Traits:
    reference = member["$ref"] if isinstance(member, dict) and "$ref" in member else None
    words: dict[str, frozenset[bytes]] = {}
    flats = schemas.alternatives(member)
    fields = [pair for flat in flats for pair in properties_of(flat).items()]
    values = [("", flat.get("enum")) for flat in flats]
    for name, some in (*values, *((name, schemas.words(one)) for name, one in fields)):
        if some:
            words[name] = words.get(name, frozenset()) | {*map(text_of, some)}
    mapping = discriminator.get("mapping")
    if reference is not None and isinstance(mapping, dict):
        named = {value for value, place in mapping.items() if _is_named(place, reference)}
        words[str(discriminator.get("propertyName"))] = frozenset(map(text_of, named))
    names = frozenset(name for name, _ in fields)
    return _Traits(reference, frozenset(flat["type"] for flat in flats), names, words)


def _is_named(place: object, reference: object) -> bool:
    return str(place).removeprefix(PLACE) == str(reference).removeprefix(PLACE)


def _likeness(one: _Traits, other: _Traits) -> tuple[int, bool, float] | None:
    """Return how alike two alternatives are; None if they are not counterparts."""
    if one.types.isdisjoint(other.types):
        return None
    shared = [not one.words[n].isdisjoint(other.words[n]) for n in one.words.keys() & other.words]
    alike = 2 * sum(shared) - len(shared)
    is_same = one.reference is not None and one.reference == other.reference
    names = one.names | other.names
    common = len(one.names & other.names) / len(names) if names else 1.0
    is_counterpart = alike > 0 or is_same or (alike == 0 and common >= _MOST)
    return (alike, is_same, common) if is_counterpart else None


# The share of common properties from which on alternatives are counterparts.
_MOST = 0.5


def _worst(found: Iterable[Fit]) -> Verdict:
    return max((fit.verdict for fit in found), default=Verdict.PROVED)


def _is_wide(flat: Flat) -> bool:
    return WIDE in flat


def _is_reference(schema: object) -> bool:
    return isinstance(schema, dict) and schema.keys() == {"$ref"}


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
