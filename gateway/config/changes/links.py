"""Declared conversions: from a part of `conversions:` in gateway.yaml to a link of the core."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from gateway.config.changes import conversion_section as model
from gateway.config.changes.body_changes import ChangeBuilder
from gateway.config.changes.losses import losses
from gateway.config.changes.parameter_changes import ParameterBuilder
from gateway.config.shape import SectionModel
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.conversion.chain import BOTH, MessageKind, VersionLink
from gateway.core.conversion.change import Change
from gateway.core.conversion.parameter_change import ParameterChange, Reversed
from gateway.core.versions.version import Version

T = TypeVar("T")

_ON = {
    "both": BOTH,
    "requests": frozenset({MessageKind.REQUEST}),
    "responses": frozenset({MessageKind.RESPONSE}),
    "errors": frozenset({MessageKind.ERROR}),
}


def build_link(
    config: model.ConversionConfig, older: Version, newer: Version, at: Location, mistakes: Mistakes
) -> VersionLink:
    """Return the link between two adjacent versions; what is wrong with it goes to `mistakes`."""
    _check(config, at, mistakes)
    _warn(config, at, mistakes)
    return VersionLink(
        older,
        newer,
        tuple(_each(config.changes, (*at, "changes"), mistakes, _change)),
        frozenset(status for text in config.statuses for status in _statuses(text)),
        _ON[config.on],
        None if config.methods is None else frozenset(config.methods),
        None if config.paths is None else frozenset(config.paths),
        tuple(_each(config.query, (*at, "query"), mistakes, partial(_parameter, header=False))),
        tuple(_each(config.headers, (*at, "headers"), mistakes, partial(_parameter, header=True))),
    )


def _check(config: model.ConversionConfig, at: Location, mistakes: Mistakes) -> None:
    if not config.model_fields_set & {"changes", "query", "headers"}:
        mistakes.add("'changes' is missing here; add it, empty where the bodies are the same", *at)
    if config.on == "errors" and not config.statuses:
        mistakes.add("says not which errors; add statuses, such as [4xx]", *at, "on")
    if config.on == "requests" and config.statuses:
        mistakes.add("requests have no status; remove it, or on: requests", *at, "statuses")
    if config.query and config.on in ("responses", "errors"):
        mistakes.add(f"{config.on} have no query; remove it, or on: {config.on}", *at, "query")


def _warn(config: model.ConversionConfig, at: Location, mistakes: Mistakes) -> None:
    for key in ("changes", "query", "headers"):
        for index, entry in enumerate(getattr(config, key)):
            for name, change in entry:
                for newer, text in losses(name, change):
                    lossy = f"warning: lossy towards version {config.between[newer]}: {text}"
                    mistakes.warn(lossy, *at, key, index, name)


def _statuses(text: str) -> range:
    first = int(text.replace("x", "0"))
    return range(first, first + 100 if "x" in text else first + 1)


def _each(
    entries: Sequence[SectionModel],
    at: Location,
    mistakes: Mistakes,
    build: Callable[[str, SectionModel, Location, Mistakes], T | None],
) -> list[T]:
    """Return the changes that can be made; each entry is to be exactly one."""
    made = []
    for index, entry in enumerate(entries):
        kinds = {name: value for name, value in entry if value is not None}
        if len(kinds) != 1:
            known = ", ".join(type(entry).model_fields)
            mistakes.add(f"a change is exactly one of {known}", *at, index)
            continue
        ((name, config),) = kinds.items()
        change = build(name, config, (*at, index, name), mistakes)
        if change is not None:
            made.append(change)
    return made


def _change(name: str, config: SectionModel, at: Location, mistakes: Mistakes) -> Change | None:
    return ChangeBuilder(at, mistakes).build(config)


def _parameter(
    name: str, config: SectionModel, at: Location, mistakes: Mistakes, *, header: bool
) -> ParameterChange | None:
    change = ParameterBuilder(at, mistakes, header=header).build(config)
    return Reversed(change) if change is not None and name == "remove" else change
