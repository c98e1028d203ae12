"""`use`: the changes of a group, for the objects at some places."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from gateway.base.mistakes import suggest
from gateway.base.model import Name, Some
from gateway.conversion.change import Change, task_of
from gateway.conversion.changes.build_context import BodyContext
from gateway.conversion.changes.change_section import BodySection, Loss
from gateway.conversion.changes.field_use import WHOLE, FieldUse
from gateway.conversion.conversion_error import ConversionError, ErrorPlace
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.field_path import Keys, Scope, is_array, keys_of, parse_scopes
from gateway.conversion.schema import Flat, SchemaImage
from gateway.conversion.steps import ConversionStep, Steps, fuse


@dataclass(frozen=True, slots=True)
class GroupUse:
    """The changes of a group, applied to the objects at some places.

    Attributes:
        name: the name of the group.
        places: what leads to the objects; nothing leads to the object itself.
        groups: the changes of each group, by its name; a group may use itself.
        in_patch: whether the changes are those for the body of a PATCH request.
        keep: makes changes that leave what does not fit; None for those that refuse it.
    """

    name: str
    places: tuple[tuple[Scope, ...], ...]
    groups: Mapping[str, tuple[Change, ...]] = field(repr=False, compare=False)
    in_patch: bool = False
    keep: Callable[[Change], Change] | None = field(default=None, repr=False, compare=False)
    # Made when they are first needed, since a group is not complete before all are.
    _steps: dict[bool, Steps[ConversionStep]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return ()

    @property
    def touches(self) -> tuple[Keys, ...]:
        return tuple(keys_of(place[0]) if place else () for place in self.places)

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.groups[self.name]

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        self._run(self._steps.get(True) or self._made(upwards=True), fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self._run(self._steps.get(False) or self._made(upwards=False), fields, form)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        made: object = flat
        for place in self.places:
            made = image.each(made, partial(self._at, place, image, upwards))
        return made

    def _at(
        self, place: tuple[Scope, ...], image: SchemaImage, upwards: bool, flat: Flat
    ) -> object:
        patch = self.in_patch and not _in_array(place)

        def changed(one: Flat) -> object:
            made: object = one
            for change in self.changes if upwards else self.changes[::-1]:
                if self.keep is not None:
                    change = self.keep(change)
                if patch:
                    change = change.for_patch()
                effect = partial(change.effect, image=image, upwards=upwards)
                within = partial(image.inside, scopes=change.scopes, effect=effect)
                made = image.each(made, within)
            return made

        key = (self.name, upwards, patch, self.keep)
        with image.keeping(values=False) if self.keep is not None else nullcontext():
            return image.inside(flat, place, changed, key)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        if not place:
            return place
        return (self._steps.get(upwards) or self._made(upwards=upwards)).origin(place)

    def for_patch(self) -> "GroupUse":
        if all(map(_in_array, self.places)):
            return self
        return replace(self, in_patch=True)

    def _run(self, steps: Steps[ConversionStep], fields: JsonObject, form: JsonForm) -> None:
        try:
            for step in steps.calls:
                step(fields, form)
        except ConversionError as error:
            raise steps.refused(error, step) from None

    def _made(self, *, upwards: bool) -> Steps[ConversionStep]:
        changes = self.changes if upwards else self.changes[::-1]
        if self.keep is not None:
            changes = tuple(map(self.keep, changes))
        patched = tuple(change.for_patch() for change in changes) if self.in_patch else changes
        steps = fuse(
            task_of(change, place, upwards=upwards, keeps=self.keep is not None)
            for place in self.places
            for change in (changes if _in_array(place) else patched)
        )
        self._steps[upwards] = steps
        return steps


def _in_array(place: tuple[Scope, ...]) -> bool:
    return any(map(is_array, place))


class UseConfig(BodySection):
    """Apply the changes of a group, which `groups` of the API names, wherever an object occurs."""

    keyword = "use"

    group: Name
    """The name of the group, whose changes name fields of one object."""
    at: Some[str] | None = None
    """The places of the objects: `item`, `items[]`, `prices.*`; without it, the object itself."""

    @cached_property
    def field_use(self) -> FieldUse:
        return FieldUse(takes=(WHOLE,), makes=(WHOLE,))  # its group is not at hand

    def losses(self) -> Iterable[Loss]:
        return ()

    def body_change(self, context: BodyContext) -> Change | None:
        if self.group not in context.groups:
            context.complain(
                f"no group is called '{self.group}'; {suggest(self.group, context.groups)}", "group"
            )
            return None
        places: list[tuple[Scope, ...]] = []
        for index, place in enumerate(self.at or ()):
            found = context.attempt(partial(parse_scopes, place), "at", index)
            if found is None:
                return None
            places.append(found)
        return GroupUse(self.group, tuple(places) or ((),), context.groups)
