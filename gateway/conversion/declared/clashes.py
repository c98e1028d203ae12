"""Clashes: changes that do not go together, in one part of a conversion or in two that meet."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gateway.base.mistakes import Location, Mistakes, place
from gateway.conversion.changes.change_section import WHOLE, Upgrade
from gateway.conversion.changes.value_kinds import ValueKinds
from gateway.conversion.declared.groups import DeclaredChange
from gateway.conversion.declared.part import Part

_ORDER = "changes are listed in the order that upgrades a document"


class _Use(NamedTuple):
    """Where a change stands, and the fields that an upgrade by it takes and makes."""

    at: Location
    taken: tuple[str, ...]
    makes: tuple[str, ...]
    use: str


def find_clashes(part: Part, before: Sequence[Part], mistakes: Mistakes) -> None:
    """Report changes that look for a field which another has taken, or make what another made.

    And changes of bodies that cannot read what another leaves in a field, and links with the
    parameters of the other version.

    Args:
        part: of a conversion.
        before: the parts of the same one that come before it and apply to some of its messages.
        mistakes: takes what is found.
    """
    for parts in ([part], *([other, part] for other in before)):
        _find(_uses_of(parts, "changes"), _within, mistakes)
        _find_unreadable(parts, mistakes)
        _find_misnamed(parts, mistakes)
        _find(_uses_of(parts, "query"), str.__eq__, mistakes)
        _find(_uses_of(parts, "headers", str.lower), str.__eq__, mistakes)


def _uses_of(
    parts: Sequence[Part], key: str, spelling: Callable[[str], str] = str
) -> Iterator[_Use]:
    for part in parts:
        changes = part.changes() if key == "changes" else _parameters(part, key)
        for change in changes:
            upgrade = change.upgrade()
            yield _Use(
                change.at,
                tuple(spelling(field) for field in upgrade.takes if field != WHOLE),
                tuple(spelling(field) for field in upgrade.makes if field != WHOLE),
                change.use,
            )


def _parameters(part: Part, key: str) -> Iterator[DeclaredChange]:
    for index, entry in enumerate(getattr(part.config, key)):
        for name, section in entry.named().items():
            yield DeclaredChange((*part.at, key, index, name), section)


def _find(changes: Iterator[_Use], within: Callable[[str, str], bool], mistakes: Mistakes) -> None:
    walk = _Walk(within, mistakes)
    for change in changes:
        walk.check(change)
        walk.add(change)


class _Walk:
    """The fields that the changes of an upgrade have taken, looked for and made so far.

    Args:
        within: whether the first of two fields is the second or a part of it.
        mistakes: takes what is found.
    """

    def __init__(self, within: Callable[[str, str], bool], mistakes: Mistakes) -> None:
        self._within = within
        self._mistakes = mistakes
        # The fields that are not there any more, those still read and those made, each with the
        # change; and the names that the first of them have now, empty where several became one.
        self._gone: dict[str, Location] = {}
        self._used: dict[str, Location] = {}
        self._made: dict[str, Location] = {}
        self._renamed: dict[str, str] = {}

    def check(self, change: _Use) -> None:
        """Report what does not go with the changes before."""
        for field in change.taken:
            self._check_taken(change, field)
        for field in change.makes:
            self._check_made(change, field)

    def _check_taken(self, change: _Use, field: str) -> None:
        within, makes = self._within, change.makes
        for known, other in self._gone.items():
            if within(field, known):
                name = self._renamed[known] and self._renamed[known] + field[len(known) :]
                self._mistakes.add(
                    f"'{field}' is taken by {place(other)}, which comes before;"
                    f" {_ORDER}: {_remedy(name, field, makes)}{change.use}",
                    *change.at,
                )
        # What becomes a part of an object of its own name would take the other parts along.
        part = next((m for m in makes if m != field and within(m, field)), None)
        for known, other in self._made.items() if part and field not in makes else ():
            if known != field and within(known, field):
                self._mistakes.add(
                    f"'{field}' becomes '{part}' here, and {place(other)}, which comes before,"
                    f" has made '{known}'; {_ORDER}{change.use}",
                    *change.at,
                )

    def _check_made(self, change: _Use, field: str) -> None:
        within, taken = self._within, change.taken
        if field in self._used and field not in taken:
            self._mistakes.add(
                f"'{field}' is made here, and {place(self._used[field])}, which comes before,"
                f" looks for it; {_ORDER}{change.use}",
                *change.at,
            )
        for known, other in (self._used | self._made).items():
            if (
                known != field
                and within(known, field)
                and not any(within(known, each) and within(each, field) for each in taken)
            ):
                self._mistakes.add(
                    f"'{field}' is made here, and {place(other)}, which comes before, looks for"
                    f" '{known}' in it; {_ORDER}{change.use}",
                    *change.at,
                )
        if field in self._made and field not in taken:
            self._mistakes.add(
                f"'{field}' is made by {place(self._made[field])} already; keep one of the"
                f" two{change.use}",
                *change.at,
            )

    def add(self, change: _Use) -> None:
        """Note what the change has taken, looked for and made."""
        here, taken, makes = change.at[:-1], change.taken, change.makes
        name = makes[0] if len(taken) == len(makes) == 1 else ""
        self._renamed |= dict.fromkeys(taken, name)
        gone = self._gone | {field: here for field in taken if field not in makes}
        self._gone = {
            field: other
            for field, other in gone.items()
            if not any(self._within(one, field) for one in makes)
        }
        used = {field: other for field, other in self._used.items() if field not in self._gone}
        self._used = used | {field: here for field in taken if field in makes}
        made = {f: other for f, other in self._made.items() if f not in taken or f in makes}
        self._made = made | {field: here for field in makes if field not in taken}


def _remedy(name: str, field: str, makes: Sequence[str]) -> str:
    """Return what is right for a change of a field that another took, which has a name by then."""
    stays = field in makes
    right = "list this one first" if stays else "keep one of the two"
    return f"write '{name}' here, or {right}" if name and (stays or name not in makes) else right


_Known = dict[str, tuple[ValueKinds, Location]]


def _find_unreadable(parts: Sequence[Part], mistakes: Mistakes) -> None:
    held: _Known = {}
    for part in parts:
        for change in part.changes():
            upgrade, here = change.upgrade(), change.at
            for field, read in upgrade.reads.items():
                found, other = held.get(field, (read, here))
                if not found.meets(read):
                    mistakes.add(
                        f"'{field}' is {found} after {place(other[:-1])}, which comes before, and"
                        f" this takes {read}; {_ORDER}{change.use}",
                        *here,
                    )
            held = _still_known(held, upgrade)
            held |= {field: (left, here) for field, left in upgrade.leaves.items()}


def _find_misnamed(parts: Sequence[Part], mistakes: Mistakes) -> None:
    """Report links with a parameter that is of the other version, where a change renames it."""
    renamed = [change.upgrade() for part in parts for change in _parameters(part, "query")]
    for change in (change for part in parts for change in part.changes()):
        if change.section.linked is None:
            continue
        version, name = change.section.linked
        for upgrade in renamed:
            own, others, other = upgrade.makes, upgrade.takes, "older"
            if version == "older":
                own, others, other = others, own, "newer"
            if name in others and name not in own and own:
                mistakes.add(
                    f"'{name}' is what the {other} version calls the parameter, and the"
                    f" link is of the {version} version; name '{own[0]}'{change.use}",
                    *change.at,
                    "parameter",
                )


def _still_known(held: _Known, upgrade: Upgrade) -> _Known:
    """Return what is known of fields that an upgrade only moves, or does not touch."""
    touched = (*upgrade.takes, *upgrade.makes)
    known = {
        field: known
        for field, known in held.items()
        if not any(_within(field, each) for each in touched)
    }
    known |= {to: held[source] for to, source in upgrade.moves.items() if source in held}
    return known


def _within(field: str, container: str) -> bool:
    return container in (WHOLE, field) or field.startswith((f"{container}.", f"{container}["))
