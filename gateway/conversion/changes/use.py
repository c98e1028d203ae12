"""`use`: applies the changes of a group to the objects at some locations."""

from functools import cached_property, partial

from gateway.base.mistakes import suggest
from gateway.base.model import Name, Some
from gateway.conversion.change import Change, GroupUse
from gateway.conversion.changes.change_section import BodySection, BuildContext
from gateway.conversion.changes.field_use import WHOLE, FieldUse
from gateway.conversion.field_path import Scope, parse_scopes


class Use(BodySection):
    """Apply the changes of a group, which `groups` of the API declares, to objects in a body."""

    keyword = "use"

    group: Name
    """The name of the group. The changes of the group are relative to one object."""
    at: Some[str] | None = None
    """The locations of the objects, such as `item`, `items[]` or `prices.*`; without it, the
    changes apply to the object itself."""

    @cached_property
    def field_use(self) -> FieldUse:
        return FieldUse(takes=(WHOLE,), makes=(WHOLE,))  # the changes of the group are not known

    def compile_body(self, context: BuildContext) -> Change | None:
        if self.group not in context.groups:
            known = suggest(self.group, context.groups)
            remedy = known if context.groups else "declare it in groups of the API"
            context.mistakes.add(f"no group is called '{self.group}'; {remedy}", "group")
            return None
        places: list[tuple[Scope, ...]] = []
        for index, place in enumerate(self.at or ()):
            found = context.mistakes.attempt(partial(parse_scopes, place), "at", index)
            if found is None:
                return None
            places.append(found)
        return GroupUse(self.group, tuple(places) or ((),), context.groups).compile()
