"""Clashes: changes that do not go together, in one part of a conversion or in two that meet."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gateway.config.changes import conversion_section as model
from gateway.config.changes.value_kinds import Held, leaves, reads
from gateway.config.shape import SectionModel
from gateway.config.text.mistakes import Location, Mistakes, place
from gateway.core.conversion.chain import VersionLink

_ORDER = "changes are listed in the order that upgrades a document"


class Part(NamedTuple):
    """A part of a conversion: as it is declared, where, and the link that it became."""

    config: model.ConversionConfig
    at: Location
    link: VersionLink


class _Use(NamedTuple):
    """Where a change stands, and the fields that an upgrade by it takes and makes."""

    entry: Location
    name: str
    taken: tuple[str, ...]
    makes: tuple[str, ...]


def find_clashes(part: Part, before: Sequence[Part], mistakes: Mistakes) -> None:
    """Report changes that look for a field which another has taken, or make what another made.

    And changes of bodies that cannot read what another leaves in a field.

    Args:
        part: of a conversion.
        before: the parts of the same one that come before it.
        mistakes: takes what is found.
    """
    for parts in ([part], *([other, part] for other in before if _meet(other.link, part.link))):
        _find(_uses_of(parts, "changes"), _within, mistakes)
        _find_unreadable(parts, mistakes)
        _find(_uses_of(parts, "query"), str.__eq__, mistakes)
        _find(_uses_of(parts, "headers", str.lower), str.__eq__, mistakes)


def _meet(one: VersionLink, other: VersionLink) -> bool:
    """Whether there are messages to which both apply."""
    return bool(
        (one.on & other.on or one.statuses & other.statuses)
        and (one.methods is None or other.methods is None or one.methods & other.methods)
        and (one.paths is None or other.paths is None or one.paths & other.paths)
    )


def _uses_of(
    parts: Sequence[Part], key: str, spelling: Callable[[str], str] = str
) -> Iterator[_Use]:
    for config, at, _ in parts:
        for index, entry in enumerate(getattr(config, key)):
            for name, change in entry:
                if change is not None:
                    taken, makes = uses(name, change)
                    yield _Use(
                        (*at, key, index),
                        name,
                        tuple(spelling(field) for field in taken if field),
                        tuple(spelling(field) for field in makes if field),
                    )


def _find(changes: Iterator[_Use], within: Callable[[str, str], bool], mistakes: Mistakes) -> None:
    gone: dict[str, Location] = {}
    made: dict[str, Location] = {}
    used: dict[str, Location] = {}
    for here, name, taken, makes in changes:
        for field in taken:
            for known, other in gone.items():
                if within(field, known):
                    mistakes.add(
                        f"'{field}' is taken by {place(other)}, which comes before; {_ORDER}",
                        *here,
                        name,
                    )
        for field in makes:
            if field in used and field not in taken:
                mistakes.add(
                    f"'{field}' is made here, and {place(used[field])}, which comes before, looks"
                    f" for it; {_ORDER}",
                    *here,
                    name,
                )
            for known, other in (used | made).items():
                if (
                    known != field
                    and within(known, field)
                    and not any(within(known, each) for each in taken)
                ):
                    mistakes.add(
                        f"'{field}' is made here, and {place(other)}, which comes before, looks for"
                        f" '{known}' in it; {_ORDER}",
                        *here,
                        name,
                    )
            if field in made and field not in taken:
                mistakes.add(
                    f"'{field}' is made by {place(made[field])} already; keep one of the two",
                    *here,
                    name,
                )
        kept = set(makes)
        gone |= {field: here for field in taken if field not in kept}
        gone = {f: other for f, other in gone.items() if not any(within(m, f) for m in makes)}
        used = {f: other for f, other in used.items() if f not in gone}
        used |= {field: here for field in taken if field in kept}
        made = {f: other for f, other in made.items() if f not in taken or f in kept}
        made |= {field: here for field in makes if field not in taken}


_Known = dict[str, tuple[Held, Location]]


def _find_unreadable(parts: Sequence[Part], mistakes: Mistakes) -> None:
    held: _Known = {}
    for config, at, _ in parts:
        for index, entry in enumerate(config.changes):
            here = (*at, "changes", index)
            for name, change in entry:
                if change is None:
                    continue
                for field, read in reads(change).items():
                    found, other = held.get(field, (read, here))
                    if not found.meets(read):
                        mistakes.add(
                            f"'{field}' is {found} after {place(other)}, which comes before, and"
                            f" this takes {read}; {_ORDER}",
                            *here,
                            name,
                        )
                held = _still_known(held, name, change)
                held |= {field: (left, here) for field, left in leaves(change).items()}


def _still_known(held: _Known, name: str, change: SectionModel) -> _Known:
    """Return what is known of fields that an upgrade by this change only moves, or lets alone."""
    if isinstance(change, model.PythonConfig) and change.field is None:
        return {}
    touched = [field for fields in uses(name, change) for field in fields]
    known = {
        field: known
        for field, known in held.items()
        if not any(_within(field, each) for each in touched)
    }
    if isinstance(change, model.RenameConfig) and change.to in held:
        known[change.field] = held[change.to]
    return known


def uses(name: str, config: SectionModel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields that an upgrade takes, and those that it makes."""
    match config:
        case model.RenameConfig(field=field, to=to):
            return (to,), (field,)
        case model.JoinConfig(fields=fields, into=into):
            return (into,), fields
        case model.SplitConfig(field=field, into=parts):
            return parts, (field,)
        case model.RemoveConfig(field=field):
            return (field,), ()
        case model.AddedConfig(field=field) if name == "remove":
            return (field,), ()
        case model.DefaultConfig(field=field) | model.AddedConfig(field=field):
            return (), (field,)
        case _:
            one = getattr(config, "field", None)
            return ((one,), (one,)) if one else ((), ())


def _within(field: str, container: str) -> bool:
    return field == container or field.startswith((f"{container}.", f"{container}["))
