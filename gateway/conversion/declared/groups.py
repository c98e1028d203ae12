"""Groups: named lists of changes of an object, which `use` applies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from gateway.base.mistakes import Location, Mistakes, place
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BodySection, BuildContext, ChangeSection
from gateway.conversion.changes.field_use import FieldUse
from gateway.conversion.changes.message_option import UnfitOption
from gateway.conversion.changes.registry import ChangeConfig
from gateway.conversion.changes.use import Use
from gateway.conversion.changes.when import When
from gateway.conversion.field_path import parse_scopes
from gateway.conversion.version_step import VersionLink

GroupConfigs = Mapping[str, Sequence[ChangeConfig]]


class DeclaredChange(NamedTuple):
    """A declared change of a conversion, or a change of a group that the conversion uses.

    Attributes:
        place: The path to the object that the change applies to; empty for the body itself.
        unfit: The policy of the change or of the `use` that applies it; None without one.
        used_place: The path to the object that the `use` in the conversion applies to.
        conditions: The conditions of each `use` that applies the change, outermost first, with the
            paths to the objects that have the fields of the conditions.
    """

    at: Location
    section: ChangeSection
    place: str = ""
    used: Location = ()
    allow_loss: str | None = None
    entry: ChangeConfig | None = None
    unfit: UnfitOption | None = None
    used_place: str = ""
    conditions: tuple[tuple[str, When], ...] = ()

    @property
    def is_conditional(self) -> bool:
        own = None if self.entry is None else self.entry.when
        return own is not None or bool(self.conditions)

    @property
    def use(self) -> str:
        return f" (of a group, used by {place(self.used)})" if self.used else ""

    def change(self, link: VersionLink) -> tuple[Change | None, str]:
        """Return the compiled change, and the path to the object that it applies to.

        With conditions, this object has the field of the outermost condition.
        """
        context = BuildContext(Mistakes(at=self.at[:-1]), {}, (link.older, link.newer))
        made = None if self.entry is None else self.entry.compile(context)
        place = self.place
        for at, when in reversed(self.conditions):
            if made is not None:
                inner = place[len(at) :].lstrip(".")
                scopes = (*(parse_scopes(inner) if inner else ()), *made.scopes)
                made, place = when.applied(replace(made, scopes=scopes), context), at
        return made, place

    @property
    def field_use(self) -> FieldUse:
        section = self.section
        return section.field_use.at(self.place) if isinstance(section, BodySection) else FieldUse()


def declared_changes(
    entries: Sequence[ChangeConfig], at: Location, groups: GroupConfigs, groups_at: Location
) -> Iterator[DeclaredChange]:
    """Yield the changes of a list, with each `use` replaced by the changes of its group.

    A `use` of a group inside the same group is not replaced.
    """
    for index, entry in enumerate(entries):
        for name, section in entry.named().items():
            reason, unfit = entry.allow_loss, entry.unfit
            one = DeclaredChange((*at, index, name), section, "", (), reason, entry, unfit)
            yield from _expanded(one, groups, groups_at, frozenset())


def _with_changes(groups: GroupConfigs) -> GroupConfigs:
    sections = {
        name: [section for entry in entries for section in entry.named().values()]
        for name, entries in groups.items()
    }
    users: dict[str, list[str]] = {}
    waiting = []
    for name, some in sections.items():
        used = [section.group for section in some if isinstance(section, Use)]
        waiting += [name] if len(used) < len(some) else []
        for inner in used:
            users.setdefault(inner, []).append(name)
    found = set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += users.get(name, ())
    return {name: entries for name, entries in groups.items() if name in found}


def _expanded(
    one: DeclaredChange, groups: GroupConfigs, groups_at: Location, inside: frozenset[str]
) -> Iterator[DeclaredChange]:
    use = one.section
    if not isinstance(use, Use):
        yield one
        return
    used, conditions = one.used or one.at, one.conditions
    if one.entry is not None and one.entry.when is not None:
        conditions = (*conditions, (one.place, one.entry.when))
    for where in use.at or ("",):
        outer = ".".join(part for part in (one.place, where) if part)
        if use.group in inside:
            yield one._replace(place=outer, used=used)
            continue
        for index, entry in enumerate(groups.get(use.group, ())):
            for name, section in entry.named().items():
                inner = DeclaredChange(
                    (*groups_at, use.group, index, name),
                    section,
                    outer,
                    used,
                    entry.allow_loss or one.allow_loss,
                    entry,
                    one.unfit if entry.unfit is None else entry.unfit,
                    one.used_place or outer,
                    conditions,
                )
                yield from _expanded(inner, groups, groups_at, inside | {use.group})


def listed_changes(
    entries: Sequence[ChangeConfig], at: Location, groups: GroupConfigs, groups_at: Location
) -> Iterator[DeclaredChange]:
    waiting: list[tuple[Sequence[ChangeConfig], Location, str | None]] = [(entries, at, None)]
    seen = set[tuple[str, str | None]]()
    while waiting:
        some, here, outer = waiting.pop(0)
        for index, entry in enumerate(some):
            reason = entry.allow_loss or outer
            for name, section in entry.named().items():
                yield DeclaredChange((*here, index, name), section, "", (), reason, entry)
                if isinstance(section, Use) and (section.group, reason) not in seen:
                    seen.add((section.group, reason))
                    inner = groups.get(section.group, ())
                    waiting.append((inner, (*groups_at, section.group), reason))


def endless(groups: GroupConfigs) -> Iterator[str]:
    """Yield the names of groups that use themselves for the same object, which would never end."""
    same = {
        name: {
            section.group
            for entry in entries
            for section in entry.named().values()
            if isinstance(section, Use) and section.at is None
        }
        for name, entries in groups.items()
    }
    for name in same:
        reached: set[str] = set()
        waiting = set(same[name])
        while waiting:
            reached.add(one := waiting.pop())
            waiting |= same.get(one, set()) - reached
        if name in reached:
            yield name


class ChangeGroups(NamedTuple):
    """The groups of an API. `configs` leaves out those without changes, also in groups they use."""

    configs: GroupConfigs
    changes: Mapping[str, tuple[Change, ...]]


def compile_groups(configs: GroupConfigs, mistakes: Mistakes) -> ChangeGroups:
    changes: dict[str, tuple[Change, ...]] = dict.fromkeys(configs, ())
    for name in endless(configs):
        mistakes.add("uses itself endlessly for the same object; add at, such as children[]", name)

    for name, entries in configs.items():
        compiled = []
        for index, entry in enumerate(entries):
            context = BuildContext(mistakes.below(name, index), changes)
            change = entry.compile(context)
            if change is not None and change.whole:
                text = "applies to the whole body here, and groups apply to objects; add field"
                context.mistakes.add(text, *entry.named())
            elif change is not None:
                if change.unfit.requests is not change.unfit.responses:
                    text = "is one choice for all messages in a group; write refuse, keep or omit"
                    context.mistakes.add(text, "unfit")
                compiled.append(change.settled())
        changes[name] = tuple(compiled)
    return ChangeGroups(_with_changes(configs), changes)
