"""Changes: the compiled form of a declared change of bodies, and combinations of changes.

A model in `gateway.conversion.changes` compiles to a `Change` with two directions. Each direction
converts documents (`step`), converts schemas (`effect`), and maps locations in errors back
(`origin`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from gateway.conversion.conversion_error import (
    Beside,
    ConversionError,
    ErrorPlace,
    Origin,
    in_value,
    inside,
    one_value,
    same_place,
)
from gateway.conversion.document import (
    MISSING,
    PLAIN,
    Document,
    JsonForm,
    JsonObject,
    change_elements,
    change_members,
    change_value,
    holder_of,
)
from gateway.conversion.field_path import Inside, Keys, Members, Scope, is_array, keys_of
from gateway.conversion.message import CarriedValue
from gateway.conversion.scalars import Type, replace_number, replace_scalar
from gateway.conversion.schema import (
    Effect,
    Flat,
    SchemaImage,
    an_object,
    field_of,
    listed,
    union,
    wide,
    words_of,
)
from gateway.conversion.steps import BODY, ConversionStep, ConversionTask, Steps, fuse
from gateway.conversion.unfit import REFUSE_UNFIT, Unfit, UnfitPolicy, count_unfit, counting

SchemaEffect = Callable[[Flat, SchemaImage], object]
"""A function that maps the flat schema of an object or value to its schema after a change."""


class DirectedChange(NamedTuple):
    """One direction of a change.

    Attributes:
        step: Converts an open object in place; may raise ConversionError.
        effect: Maps the schema of the object before the step to the schema after it.
        origin: Maps a location after the step to the location before the step. If the step created
            the value there from another value, the result is the location of that other value.
        adds: The field that the step adds to a document without it; empty if it adds no field.
        lists: The field that the step puts into a list; empty if it creates no list.
    """

    step: ConversionStep
    effect: SchemaEffect
    origin: Origin = same_place
    adds: Keys = ()
    lists: Keys = ()

    def effect_in(self, image: SchemaImage) -> Effect:
        return lambda flat: self.effect(flat, image)


UNCHANGED = DirectedChange(lambda _fields, _form: None, lambda flat, _image: flat)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One declared change between two adjacent versions, compared by identity.

    Attributes:
        scopes: The scopes that select the objects to change, each relative to the previous scope.
        touches: The fields that the change reads or writes, including everything inside them.
        whole: Whether the change applies to the whole body, held in the field BODY of an object.
        of_value: Whether the change converts a single value. Only such a change can leave an
            invalid value unchanged.
        patch: The variant for bodies of PATCH requests, which contain only the fields to change
            (RFC 7396). None if it equals this change.
        lenient: Returns the variant that leaves invalid values unchanged. None for the default
            variant; see `keeping_unfit`.
        of_documents: The variant for the documents of a stream: a change of the whole body that
            skips documents of another shape. None if it equals this change.
        omitting: Returns the variant that omits unfit values. None for the default variant; see
            `omitting_unfit`.
        allow_loss: The reason why the change may lose data; empty without one.
    """

    scopes: tuple[Scope, ...]
    touches: tuple[Keys, ...]
    up: DirectedChange
    down: DirectedChange
    whole: bool = False
    of_value: bool = False
    patch: "Change | None" = None
    lenient: "Callable[[], Change] | None" = None
    omitting: "Callable[[], Change] | None" = None
    unfit: UnfitPolicy = REFUSE_UNFIT
    of_documents: "Change | None" = None
    group: "GroupUse | None" = None
    carried: CarriedValue | None = None
    allow_loss: str = ""

    def directed(self, *, upwards: bool) -> DirectedChange:
        return self.up if upwards else self.down

    def for_patch(self) -> "Change":
        if self.patch is None:
            return self
        if (self.patch.unfit, self.patch.allow_loss) == (self.unfit, self.allow_loss):
            return self.patch
        return replace(self.patch, unfit=self.unfit, allow_loss=self.allow_loss)

    def settled(self) -> "Change":
        if self.unfit.refuses:
            return self
        made = replace(self.fitted(of_request=True), unfit=REFUSE_UNFIT)
        return replace(made, lenient=lambda: made, omitting=lambda: made)

    def fitted(self, of_request: bool) -> "Change":
        unfit = self.unfit.of(of_request)
        if unfit is Unfit.REFUSE or self.whole:
            return self
        made = keeping_unfit(self) if unfit is Unfit.KEEP else omitting_unfit(self)
        counted = partial(counting, self.unfit, of_request)
        up, down = (one._replace(step=counted(one.step)) for one in (made.up, made.down))
        return replace(made, up=up, down=down)

    def task(
        self, scopes: tuple[Scope, ...] = (), *, upwards: bool, keeps: bool = False
    ) -> ConversionTask:
        one = self.directed(upwards=upwards)
        return ConversionTask(
            (*scopes, *self.scopes), self.touches, one.step, self.whole, one.origin, keeps
        )


def for_patch(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the variants of changes for the bodies of PATCH requests.

    A PATCH request replaces a list as a whole (RFC 7396). So if a change puts a field into a list,
    other changes complete the value of the field.
    """
    made = []
    for change in changes:
        patch = change.for_patch()
        if patch is not change:
            for upwards in (True, False):
                one = change.directed(upwards=upwards)
                listed = (
                    each.directed(upwards=upwards).lists
                    for each in changes
                    if each.scopes == change.scopes
                )
                around = next((f for f in listed if f and one.adds[: len(f)] == f), None)
                if around is not None and around != one.adds:
                    complete = _where_present(one, around)
                    patch = (
                        replace(patch, up=complete) if upwards else replace(patch, down=complete)
                    )
        made.append(patch)
    return tuple(made)


def _where_present(change: DirectedChange, field: Keys) -> DirectedChange:
    def step(fields: JsonObject, form: JsonForm) -> None:
        if holder_of(fields, field, form, keeps=True) is not None:
            change.step(fields, form)

    def effect(flat: Flat, image: SchemaImage) -> object:
        return union((flat, change.effect(flat, image)))

    return change._replace(step=step, effect=effect)


def in_arrays(scopes: Iterable[Scope]) -> bool:
    """Return whether scopes lead into an array. PATCH replaces arrays as a whole (RFC 7396)."""
    return any(map(is_array, scopes))


class ValueRewrite(NamedTuple):
    step: Callable[[Keys], ConversionStep]
    effect: SchemaEffect
    origin: Callable[[Keys], Origin] = lambda _: same_place


_VALUE: Keys = ("value",)


def value_change(
    scopes: tuple[Scope, ...],
    field: Keys,
    up: ValueRewrite | None,
    down: ValueRewrite | None,
    *,
    nulls: bool = False,
) -> Change:
    """Return a change of the value of one field; a direction that is None changes nothing.

    Null stays null, unless `nulls` is true.
    """

    def directed(rewrite: ValueRewrite | None) -> DirectedChange:
        if rewrite is None:
            return UNCHANGED

        def effect(flat: Flat, image: SchemaImage) -> object:
            convert = partial(_value_effect, rewrite, image)
            return image.value(flat, field, convert, nulls=nulls)

        return DirectedChange(rewrite.step(field), effect, rewrite.origin(field))

    return Change(scopes, (field,), directed(up), directed(down), of_value=True)


def _value_effect(rewrite: ValueRewrite, image: SchemaImage, flat: Flat) -> object:
    words = words_of(flat)
    if words is None or flat["type"] in ("object", "array"):
        return rewrite.effect(flat, image)
    step, reason = rewrite.step(_VALUE), ""
    made: list[object] = []
    refused: list[object] = []
    for word in words:
        fields: JsonObject = {_VALUE[0]: word}
        try:
            step(fields, PLAIN)
        except ConversionError as error:
            reason = error.reason
            refused.append(word)
        else:
            made.append(fields[_VALUE[0]])
    return image.refused(flat, reason, listed(made), refused) if refused else listed(made)


def rewrite_scalars(
    source: Type, target: Type, convert: Callable[[str], str | bool], effect: SchemaEffect
) -> ValueRewrite:
    def step_at(field: Keys) -> ConversionStep:
        def step(fields: JsonObject, form: JsonForm) -> None:
            replace_scalar(fields, field, form, source, target, convert)

        return step

    return ValueRewrite(step_at, effect)


def rewrite_numbers(convert: Callable[[str], str], effect: SchemaEffect) -> ValueRewrite:
    def step_at(field: Keys) -> ConversionStep:
        def step(fields: JsonObject, form: JsonForm) -> None:
            replace_number(fields, field, form, convert)

        return step

    return ValueRewrite(step_at, effect)


def rewrite_opened(
    convert: Callable[[JsonForm, Document], Document],
    effect: SchemaEffect,
    origin: Callable[[Keys], Origin] = one_value,
) -> ValueRewrite:
    def step_at(field: Keys) -> ConversionStep:
        def step(fields: JsonObject, form: JsonForm) -> None:
            change_value(fields, field, form, partial(convert, form))

        return step

    return ValueRewrite(step_at, effect, origin)


def inverse(change: Change) -> Change:
    patch, lenient, omitting = change.patch, change.lenient, change.omitting
    documents, carried = change.of_documents, change.carried
    return replace(
        change,
        up=change.down,
        down=change.up,
        patch=None if patch is None else inverse(patch),
        lenient=None if lenient is None else lambda: inverse(lenient()),
        omitting=None if omitting is None else lambda: inverse(omitting()),
        of_documents=None if documents is None else inverse(documents),
        carried=None if carried is None else carried.inverse(),
    )


def sequence(*changes: Change) -> Change:
    """Combine changes with the same scopes into one. An upgrade applies them in this order."""
    patches = [change.for_patch() for change in changes]
    return Change(
        changes[0].scopes,
        tuple(keys for change in changes for keys in change.touches),
        _chained([change.up for change in changes]),
        _chained([change.down for change in reversed(changes)]),
        patch=None if patches == [*changes] else sequence(*patches),
        lenient=lambda: sequence(*map(keeping_unfit, changes)),
        omitting=lambda: sequence(*map(omitting_unfit, changes)),
    )


def _chained(directions: Sequence[DirectedChange]) -> DirectedChange:
    def step(fields: JsonObject, form: JsonForm) -> None:
        try:
            for one in directions:
                one.step(fields, form)
        except ConversionError as error:
            raise error.moved(partial(_origin, directions[: directions.index(one)])) from None

    def effect(flat: Flat, image: SchemaImage) -> object:
        made: object = flat
        for one in directions:
            made = image.each(made, one.effect_in(image))
        return made

    return DirectedChange(step, effect, partial(_origin, directions))


def _origin(directions: Sequence[DirectedChange], place: ErrorPlace) -> ErrorPlace:
    for one in reversed(directions):
        place = one.origin(place)
    return place


def whole_body(change: Change, of_documents: Change | None = None) -> Change:
    """Turn a change of the field BODY into a change of the whole body, which may be any JSON value.

    Args:
        of_documents: The variant for the documents of a stream, as a change of the field BODY.
    """

    def directed(one: DirectedChange) -> DirectedChange:
        return one._replace(effect=partial(_held_effect, change.scopes, one.effect, BODY[0]))

    return Change(
        (),
        ((),),
        directed(change.up),
        directed(change.down),
        whole=True,
        patch=None if change.patch is None else whole_body(change.patch, of_documents),
        of_documents=None if of_documents is None else whole_body(of_documents),
        carried=change.carried,
    )


def _held_effect(
    scopes: tuple[Scope, ...], effect: SchemaEffect, key: str, schema: object, image: SchemaImage
) -> object:
    made = image.inside(an_object({key: schema}), scopes, lambda flat: effect(flat, image))
    return union(field_of(one, key) for one in image.alternatives(made))


_KEY = "element"
ELEMENT: Keys = (_KEY,)
"""The path of an element in the temporary object to which changes of elements are applied."""


def elements(
    scopes: tuple[Scope, ...],
    array: Keys,
    depth: int,
    change: Change,
    *,
    keeps: bool = False,
    omits: bool = False,
) -> Change:
    """Return a change of every element of an array, or of every member of an object.

    An absent or null array or object is unchanged. An array in a PATCH request (RFC 7396) is
    complete, but an object has only the members to change. A null member, which removes the member,
    stays null.

    Args:
        array: The keys that lead to the array or object; empty for the current object itself.
        depth: The number of nested arrays around the elements: 1 for a plain array, 0 for the
            members of an object.
        change: The change of an element, which is held in the field ELEMENT.
        keeps: Whether a value that is not an array or object is left unchanged. If false, such a
            value is an error.
    """

    def directed(one: DirectedChange) -> DirectedChange:
        def effect(flat: Flat, image: SchemaImage) -> object:
            with image.keeping(values=True) if keeps else nullcontext():
                convert = partial(held, image=image)
                if not omits:
                    return _elements_effect(array, depth, convert, flat, image)
                fewer = image.value(flat, array, _with_fewer) if array else _with_fewer(flat)
                return image.each(
                    fewer, lambda each: _elements_effect(array, depth, convert, each, image)
                )

        def held(schema: object, image: SchemaImage) -> object:
            return _held_effect(change.scopes, one.effect, _KEY, schema, image)

        def of_element(inner: ErrorPlace) -> ErrorPlace:
            place = inner if isinstance(inner, Beside) else (*ELEMENT, *inner)
            return in_value(one.origin(place))

        def origin(place: ErrorPlace) -> ErrorPlace:
            if not depth:
                return inside((Members(array),), place, of_element)
            return inside((array, *((),) * (depth - 1)), place, of_element)

        step = _elements_step(array, depth, one.step, keeps=keeps, omits=omits)
        return DirectedChange(step, effect, origin)

    return Change(
        scopes,
        (array,),
        directed(change.up),
        directed(change.down),
        lenient=lambda: elements(scopes, array, depth, keeping_unfit(change), keeps=True),
        omitting=lambda: elements(
            scopes, array, depth, omitting_unfit(change), keeps=True, omits=True
        ),
    )


def _with_fewer(flat: Flat) -> Flat:
    dropped = ("minItems", "contains", "minContains", "minProperties", "required", "prefixItems")
    made = {key: value for key, value in flat.items() if key not in dropped}
    return flat if len(made) == len(flat) else made


def _elements_step(
    array: Keys, depth: int, step: ConversionStep, *, keeps: bool, omits: bool
) -> ConversionStep:
    def changed(form: JsonForm, element: Document) -> Document:
        holder: JsonObject = {_KEY: element}
        try:
            step(holder, form)
        except ConversionError as error:
            # The field ELEMENT is not part of the location.
            raise error.moved(in_value) from None
        return holder.get(_KEY, MISSING) if omits else holder[_KEY]

    def step_of_all(fields: JsonObject, form: JsonForm) -> None:
        each = partial(changed, form)

        def all_changed(value: Document) -> Document:
            if depth:
                made = change_elements(value, depth - 1, form, each, keeps=keeps)
            else:
                made = change_members(value, each, keeps=keeps)
            return _without_omitted(made, depth) if omits else made

        if array:
            change_value(fields, array, form, all_changed, keeps=keeps)
        else:
            change_members(fields, each)
            if omits:
                _without_omitted(fields, 0)

    return step_of_all


def _without_omitted(value: Document, depth: int) -> Document:
    if isinstance(value, list):
        if depth > 1:
            return [_without_omitted(each, depth - 1) for each in value]
        return [each for each in value if each is not MISSING]
    if isinstance(value, dict) and not depth:
        for key in [key for key, each in value.items() if each is MISSING]:
            del value[key]
    return value


def _elements_effect(
    array: Keys,
    depth: int,
    convert: Callable[[object], object],
    flat: Flat,
    image: SchemaImage,
) -> object:
    def members(value: Flat) -> object:
        if value["type"] == "object":
            return image.members(value, convert)
        return image.refused(value, "expected an object")

    def nested(value: Flat, depth: int) -> object:
        if value["type"] == "null":
            return value
        if value["type"] != "array":
            return image.refused(value, "expected an array")
        if depth == 1:
            return image.elements(value, convert)
        return image.elements(
            value, lambda inner: image.each(inner, lambda each: nested(each, depth - 1))
        )

    if not array:
        return members(flat)
    return image.value(flat, array, partial(nested, depth=depth) if depth else members)


def keeping_unfit(change: Change) -> Change:
    """Return the variant of a change that leaves invalid values unchanged.

    Other changes still move such a value to its field in the other version, where the service
    refuses it in its own error format. A change of the whole body has no such variant and is
    returned itself.
    """
    if change.whole:
        return change
    return keep_unfit(change) if change.lenient is None else change.lenient()


def keep_unfit(
    change: Change, *, of_value: bool | None = None, instead: Change | None = None
) -> Change:
    """Return a change that leaves an object unchanged if the object does not fit the change.

    Args:
        of_value: Whether every invalid value leaves the object unchanged. If false, the object is
            unchanged only if the path to a field leads through a value that is not an object, and
            all other errors are raised. The default is the `of_value` of the change.
    """
    values = change.of_value if of_value is None else of_value

    def directed(one: DirectedChange, other: DirectedChange | None) -> DirectedChange:
        def step(fields: JsonObject, form: JsonForm) -> None:
            before = _saved(fields)
            try:
                one.step(fields, form)
            except ConversionError as error:
                if not (values or error.is_on_way):
                    raise
                _restore(before)
                count_unfit(str(error))
                if other is not None and error.is_on_way:
                    other.step(fields, form)

        def effect(flat: Flat, image: SchemaImage) -> object:
            before = len(image.refusals)
            with image.keeping(values=False):
                made = one.effect(flat, image)
            if values and len(image.refusals) > before:
                del image.refusals[before:]
                made = union((made, flat))
            return made if other is None else union((made, other.effect(flat, image)))

        def origin(place: ErrorPlace) -> ErrorPlace:
            found = one.origin(place)
            return found if found != place or other is None else other.origin(place)

        return DirectedChange(step, effect, origin)

    patch = change.patch
    return replace(
        change,
        up=directed(change.up, None if instead is None else instead.up),
        down=directed(change.down, None if instead is None else instead.down),
        patch=None if patch is None else keep_unfit(patch, of_value=values, instead=instead),
        lenient=None,
    )


# The maximum number of values that a change omits from one object, since each takes an attempt.
_MOST_OMITTED = 100


def omitting_unfit(change: Change) -> Change:
    """Return the variant of a change that removes the values that the change cannot convert.

    An element of an array is removed from the array, and any other value is removed with its field.
    For a change of the whole body, the result is the same change.
    """
    if change.whole:
        return change
    if change.omitting is not None:
        return change.omitting()
    patch = change.patch
    return replace(_removing(change), patch=None if patch is None else omitting_unfit(patch))


def _removing(change: Change, keys: Keys | None = None) -> Change:
    """Return a change that removes the field at `keys`, or the unfit value itself without keys."""

    def directed(one: DirectedChange) -> DirectedChange:
        def step(fields: JsonObject, form: JsonForm) -> None:
            for attempt in range(_MOST_OMITTED + 1):
                before = _saved(fields)
                try:
                    one.step(fields, form)
                except ConversionError as error:
                    _restore(before)
                    if attempt == _MOST_OMITTED or not _omit(fields, keys or error.place, form):
                        raise
                    count_unfit(str(error))
                else:
                    return

        def effect(flat: Flat, image: SchemaImage) -> object:
            before = len(image.refusals)
            made = one.effect(flat, image)
            if len(image.refusals) == before:
                return made
            del image.refusals[before:]
            # Without keys, any part of the fields that the change reads may be removed.
            rest = image.take(flat, keys).rest if keys else wide({"type": "object"})
            return union((made, rest))

        return DirectedChange(step, effect, one.origin)

    made = replace(change, up=directed(change.up), down=directed(change.down), patch=None)
    return replace(made, touches=(keys,)) if keys else made


def _omit(fields: JsonObject, place: ErrorPlace, form: JsonForm) -> bool:
    if isinstance(place, Beside) or not place:
        return False
    holder: Any = fields
    for token in place[:-1]:
        if not _has(holder, token):
            return False
        inner = form.open(holder[token])
        holder[token] = inner
        holder = inner
    if not _has(holder, place[-1]):
        return False
    del holder[place[-1]]
    return True


def _has(holder: Any, token: str | int) -> bool:
    if isinstance(holder, list):
        return isinstance(token, int) and token < len(holder)
    return isinstance(holder, dict) and token in holder


def _saved(value: Document) -> list[tuple[Any, Any]]:
    if not isinstance(value, dict | list):
        return []
    held = value.values() if isinstance(value, dict) else value
    return [(value, value.copy()), *(one for inner in held for one in _saved(inner))]


def _restore(saved: list[tuple[Any, Any]]) -> None:
    for value, held in saved:
        value.clear()
        (value.update if isinstance(value, dict) else value.extend)(held)


@dataclass(frozen=True, slots=True)
class GroupUse:
    """Applies the changes of a group to the objects at one or more locations.

    Attributes:
        places: The scopes that lead to the objects. An empty tuple is the current object itself.
        groups: The changes of each group by the group's name. A group may use itself.
    """

    name: str
    places: tuple[tuple[Scope, ...], ...]
    groups: Mapping[str, tuple[Change, ...]] = field(repr=False, compare=False)
    in_patch: bool = False
    keeps: bool = False

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.groups[self.name]

    def compile(self) -> Change:
        patch = None
        if not self.in_patch and not all(map(in_arrays, self.places)):
            patch = replace(self, in_patch=True).compile()
        return Change(
            (),
            tuple(keys_of(place[0]) if place else () for place in self.places),
            self._directed(upwards=True),
            self._directed(upwards=False),
            patch=patch,
            lenient=lambda: replace(self, keeps=True).compile(),
            omitting=self._omitting,
            group=self,
        )

    def _omitting(self) -> Change:
        found = [self._omitting_at(place) if place else self.compile() for place in self.places]
        return GroupUse("", ((),), {"": tuple(found)}, self.in_patch).compile()

    def _omitting_at(self, place: tuple[Scope, ...]) -> Change:
        begin = max(index for index, scope in enumerate(place) if scope != ())
        last, depth = place[begin], len(place) - begin
        if isinstance(last, Inside):
            of_field = replace(self, places=((last,),)).compile()
            return replace(_removing(of_field, last.keys), scopes=place[:begin])
        array, depth = (last.keys, depth - 1) if isinstance(last, Members) else (last, depth)
        of_element = replace(self, places=((Inside(ELEMENT),),)).compile()
        removing = _removing(of_element, ELEMENT)
        return elements(place[:begin], array, depth, removing, keeps=True, omits=True)

    def _directed(self, *, upwards: bool) -> DirectedChange:
        # Create the steps on first use, because a group may use groups that are compiled later.
        made: list[Steps[ConversionStep]] = []

        def steps() -> Steps[ConversionStep]:
            if not made:
                made.append(self._fused(upwards=upwards))
            return made[0]

        def step(fields: JsonObject, form: JsonForm) -> None:
            fused = made[0] if made else steps()
            try:
                for one in fused.calls:
                    one(fields, form)
            except ConversionError as error:
                raise fused.refused(error, one) from None

        def effect(flat: Flat, image: SchemaImage) -> object:
            result: object = flat
            for place in self.places:
                result = image.each(result, partial(self._effect, place, image, upwards))
            return result

        return DirectedChange(step, effect, lambda place: steps().origin(place) if place else place)

    def _applied(self, place: tuple[Scope, ...], *, upwards: bool) -> Iterable[Change]:
        changes = self.changes if upwards else self.changes[::-1]
        if self.keeps:
            changes = tuple(map(keeping_unfit, changes))
        if self.in_patch and not in_arrays(place):
            return for_patch(tuple(changes))
        return changes

    def _fused(self, *, upwards: bool) -> Steps[ConversionStep]:
        return fuse(
            change.task(place, upwards=upwards, keeps=self.keeps)
            for place in self.places
            for change in self._applied(place, upwards=upwards)
        )

    def _effect(
        self, place: tuple[Scope, ...], image: SchemaImage, upwards: bool, flat: Flat
    ) -> object:
        def changed(one: Flat) -> object:
            made: object = one
            for change in self._applied(place, upwards=upwards):
                effect = change.directed(upwards=upwards).effect_in(image)
                made = image.each(made, partial(image.inside, scopes=change.scopes, effect=effect))
            return made

        key = (self.name, upwards, self.in_patch and not in_arrays(place), self.keeps)
        with image.keeping(values=False) if self.keeps else nullcontext():
            return image.inside(flat, place, changed, key)
