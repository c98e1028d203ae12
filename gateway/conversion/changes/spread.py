"""`spread` and `collect`: a value in every element in one version, beside them in the other.

In place of elements, there may be one object beside the value.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.build_context import BodyContext
from gateway.conversion.changes.change_section import BodySection, Loss
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    get,
    put,
    reach,
    take,
)
from gateway.conversion.field_path import (
    FieldPath,
    Inside,
    Keys,
    Scope,
    depth_of,
    keys_of,
)
from gateway.conversion.schema import Flat, SchemaImage, union
from gateway.conversion.steps import ConversionStep, ConversionTask, fuse


@dataclass(frozen=True, slots=True)
class Spread:
    """The older version has the value of a field in each of the objects in some arrays, too.

    Downwards, it is put into each of them; one that has such a field already is refused. Upwards,
    it is taken out of them, and becomes the field where that is absent; values that differ are
    refused. A field that is absent stays absent where no element has it.

    Attributes:
        field: Where the value is, from the object that holds it.
        inner: What leads from that object to the elements.
        target: Where the value is in an element of the older version.
        keep: Whether the older version has the field itself as well.
        keeps: Whether what is no array or no object on the way to the elements stays as it is.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    inner: tuple[Scope, ...]
    target: Keys
    keep: bool = True
    keeps: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        return (self.field[:1], keys_of(self.inner[0]))

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        is_there = get(fields, self.field, form) is not MISSING
        known = self._value(fields, form) if is_there else MISSING
        for value in self._taken(fields, form):
            if known is MISSING:
                known = value
                put(fields, self.field, value, form)
            elif form.parse(value) != form.parse(known):
                raise ConversionError(
                    "differs between elements, or from the field beside them",
                    self.field if is_there else keys_of(self.inner[0]),
                )

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        if get(fields, self.field, form) is MISSING:
            return
        value = self._value(fields, form)
        if not self.keep:
            take(fields, self.field, form)

        def write(element: JsonObject, form: JsonForm) -> None:
            if get(element, self.target, form) is not MISSING:
                raise ConversionError("is there already", self.target)
            put(element, self.target, value, form)

        self._each(fields, form, write)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if not self.keeps:
            return self._spread(flat, image, upwards=upwards)
        with image.keeping(values=False):
            return self._spread(flat, image, upwards=upwards)

    def _spread(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if not upwards:
            rest, value, required = image.take(flat, self.field, keep=self.keep)

            def write(element: Flat) -> object:
                if image.may_have(element, self.target):
                    image.refusals.append(f"'{self.target[-1]}' may be there already")
                return image.put(element, self.target, value, required=required)

            if value is False:
                return flat
            return image.inside(rest, self.inner, write)
        found: list[object] = []

        def read(element: Flat) -> object:
            taken = image.take(element, self.target)
            found.append(taken.value)
            return taken.rest

        made = image.inside(flat, self.inner, read)
        inner = union(found)
        if inner is False:
            return made
        image.refusals.append("the values may differ")
        return image.put(made, self.field, inner, required=False)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        if upwards or isinstance(place, Beside):
            return place  # where the older version lacked the field, the object has its elements
        depth = depth_of(self.inner, place)
        if depth is None or place[depth : depth + len(self.target)] != self.target:
            return place
        return (*self.field, *place[depth + len(self.target) :])

    def for_patch(self) -> "Spread":
        return self

    def _value(self, fields: JsonObject, form: JsonForm) -> Document:
        holder = reach(fields, self.field, form)
        assert holder is not None  # as the field is there
        return form.close(holder[self.field[-1]])

    def _taken(self, fields: JsonObject, form: JsonForm) -> Iterator[Document]:
        found: list[Document] = []

        def read(element: JsonObject, form: JsonForm) -> None:
            value = take(element, self.target, form)
            if value is not MISSING:
                found.append(form.close(value))

        self._each(fields, form, read)
        yield from found

    def _each(self, fields: JsonObject, form: JsonForm, step: ConversionStep) -> None:
        task = ConversionTask(self.inner, (self.target[:1],), step, keeps=self.keeps)
        for fused in fuse([task]).calls:
            fused(fields, form)


class _SpreadSection(BodySection):
    """What the two changes have in common."""

    keep: bool = True
    """Whether the version with the value in the elements also has it beside them. The default is
    true."""

    def _losses(self, beside: str, inside: str, *, newer: bool) -> Iterator[Loss]:
        """Yield what elements that lack the value, or no elements at all, cannot give back.

        Args:
            beside: the field beside the elements.
            inside: the field of the elements.
            newer: whether the newer version has it beside the elements.
        """
        text = f"on the way back, every '{inside}' is that of '{beside}'"
        yield Loss(newer, text, overwrites=False)
        if not self.keep:
            yield Loss(not newer, f"'{beside}' is left out where nothing can hold '{inside}'")

    def _change(
        self, context: BodyContext, beside: FieldPath | None, inside: FieldPath | None, key: str
    ) -> Change | None:
        # Imported when rules name it: it takes memory that most can save.

        if beside is None or inside is None:
            return None
        depth = len(beside.scopes)
        inner, (*outer, last) = inside.scopes[depth:], inside.keys
        is_beside = inside.scopes[:depth] == beside.scopes and (inner or outer)
        if not is_beside or (not inner and inside.keys == beside.keys):
            context.complain(
                "is not in elements or an object beside the field; write one such as"
                " lines[].currency or price.currency",
                key,
            )
            return None
        if inner:
            return Spread(beside.scopes, beside.keys, inner, inside.keys, self.keep)
        return Spread(beside.scopes, beside.keys, (Inside(tuple(outer)),), (last,), self.keep)


class SpreadConfig(_SpreadSection):
    """Spread a value over elements, or into an object: the older version has it in each."""

    keyword = "spread"

    field: str
    """The field of the newer version that holds the value, such as currency."""
    into: str
    """The field of each element in the older version, such as `lines[].currency`, or of one object,
    such as `price.currency`."""

    def losses(self) -> Iterator[Loss]:
        return self._losses(self.field, self.into, newer=True)

    def body_change(self, context: BodyContext) -> Change | None:
        beside, inside = context.path(self.field, "field"), context.path(self.into, "into")
        return self._change(context, beside, inside, "into")


class CollectConfig(_SpreadSection):
    """Collect a value from elements: the older version has it once, the newer in each element."""

    keyword = "collect"

    field: str
    """The field of each element in the newer version, such as `lines[].currency`, or of one object,
    such as `price.currency`."""
    into: str
    """The field of the older version that holds the value, such as currency."""

    def losses(self) -> Iterator[Loss]:
        return self._losses(self.into, self.field, newer=False)

    def body_change(self, context: BodyContext) -> Change | None:
        beside, inside = context.path(self.into, "into"), context.path(self.field, "field")
        change = self._change(context, beside, inside, "field")
        return None if change is None else Inverse(change)
