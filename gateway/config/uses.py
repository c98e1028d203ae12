"""What the declared changes take and make, and what they lose: to warn, and to find clashes."""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.config import conversion as model
from gateway.config.report import Location, Mistakes, place
from gateway.config.shape import Model
from gateway.config.words import scalar, spelt


class Loss(NamedTuple):
    """What one direction of a change loses; `newer` says towards which version."""

    newer: bool
    text: str


_SPLIT = "'{}' is split at the first '{}', wherever it was joined"


def losses(name: str, config: Model) -> Iterator[Loss]:
    """Yield what a change loses, each with the field that does."""
    match config:
        case model.JoinConfig(into=text, separator=separator):
            yield Loss(True, _SPLIT.format(text, separator))
        case model.SplitConfig(field=text, separator=separator):
            yield Loss(False, _SPLIT.format(text, separator))
        case model.DefaultConfig(field=field):
            yield Loss(False, f"'{field}' is left out")
        case model.RemoveConfig(field=field):
            yield Loss(True, f"'{field}' is left out")
        case model.AddedConfig(field=field):
            yield Loss(name == "remove", f"'{field}' is left out")
        case model.WrapConfig(field=field, many="first"):
            yield Loss(True, f"of several elements, '{field}' keeps the first")
        case model.UnwrapConfig(field=field, many="first"):
            yield Loss(False, f"of several elements, '{field}' keeps the first")
        case model.MapConfig():
            yield from _folds(config)


def _folds(config: model.MapConfig) -> Iterator[Loss]:
    older = {newer: spelt(scalar(word)) for newer, word in config.values.items()}
    newer = {word: spelt(scalar(known)) for word, known in config.back.items()}
    for is_newer, words in ((False, older), (True, {w: n for n, w in older.items()} | newer)):
        by_word: dict[str, list[str]] = {}
        for word, known in words.items():
            by_word.setdefault(known, []).append(word)
        for known, folded in by_word.items():
            if len(folded) > 1:
                yield Loss(is_newer, f"'{config.field}' is {known} for {' and '.join(folded)}")
    if config.default is not None:
        for is_newer, other in ((False, config.default.older), (True, config.default.newer)):
            if other is not None:
                known = spelt(scalar(other))
                yield Loss(is_newer, f"'{config.field}' is {known} for every other value")


def find_clashes(config: model.ConversionConfig, at: Location, mistakes: Mistakes) -> None:
    """Report changes that look for a field which another has taken, or make what another made."""
    gone: dict[str, Location] = {}
    made: dict[str, Location] = {}
    used: dict[str, Location] = {}
    for index, entry in enumerate(config.changes):
        for name, change in entry:
            if change is None:
                continue
            here = (*at, "changes", index)
            taken, makes = _uses(change)
            for field in taken:
                for known, other in gone.items():
                    if _within(field, known):
                        mistakes.add(
                            f"'{field}' is taken by {place(other)}, which comes before; changes are"
                            " listed in the order that upgrades a document",
                            *here,
                            name,
                        )
            for field in makes:
                if field in used and field not in taken:
                    mistakes.add(
                        f"'{field}' is made here, and {place(used[field])}, which comes before,"
                        " looks for it; changes are listed in the order that upgrades a document",
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
            gone = {f: other for f, other in gone.items() if not any(_within(m, f) for m in makes)}
            used = {f: other for f, other in used.items() if f not in gone}
            used |= {field: here for field in taken if field in kept}
            made = {f: other for f, other in made.items() if f not in taken or f in kept}
            made |= {field: here for field in makes if field not in taken}


def _uses(config: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields that an upgrade takes, and those that it makes."""
    match config:
        case model.RenameConfig(field=field, to=to):
            return (to,), (field,)
        case model.JoinConfig(fields=fields, into=into):
            return (into,), fields
        case model.SplitConfig(field=field, into=parts):
            return parts, (field,)
        case model.DefaultConfig(field=field):
            return (), (field,)
        case model.RemoveConfig(field=field):
            return (field,), ()
        case _:
            one = getattr(config, "field", None)
            return ((one,), (one,)) if one else ((), ())


def _within(field: str, container: str) -> bool:
    return field == container or field.startswith((f"{container}.", f"{container}["))
