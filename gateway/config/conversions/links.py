"""Links: from a part of `conversions:` in gateway.yaml to a link of the core."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from gateway.config.changes.change_list import ChangeEntry, ParameterConfig
from gateway.config.changes.change_section import ChangeSection
from gateway.config.changes.change_site import BodySite, ParameterSite
from gateway.config.conversions.conversion_section import ConversionConfig
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.conversion.chain import BOTH, MessageKind, VersionLink
from gateway.core.conversion.parameter_change import ParameterChange
from gateway.core.versions.version import Version

S = TypeVar("S", bound=ChangeSection)
T = TypeVar("T")

_ON = {
    "both": BOTH,
    "requests": frozenset({MessageKind.REQUEST}),
    "responses": frozenset({MessageKind.RESPONSE}),
    "errors": frozenset({MessageKind.ERROR}),
}


def build_link(
    config: ConversionConfig, older: Version, newer: Version, at: Location, mistakes: Mistakes
) -> VersionLink:
    """Return the link between two adjacent versions; what is wrong with it goes to `mistakes`."""
    _check(config, at, mistakes)
    _warn(config, at, mistakes)

    def parameters(key: str, entries: Sequence[ParameterConfig]) -> tuple[ParameterChange, ...]:
        return tuple(
            _each(
                entries,
                (*at, key),
                mistakes,
                lambda section, here: section.parameter_change(
                    ParameterSite(here, mistakes, header=key == "headers")
                ),
            )
        )

    return VersionLink(
        older,
        newer,
        tuple(
            _each(
                config.changes,
                (*at, "changes"),
                mistakes,
                lambda section, here: section.body_change(BodySite(here, mistakes)),
            )
        ),
        frozenset(status for text in config.statuses for status in _statuses(text)),
        _ON[config.on],
        None if config.methods is None else frozenset(config.methods),
        None if config.paths is None else frozenset(config.paths),
        parameters("query", config.query),
        parameters("headers", config.headers),
    )


def _check(config: ConversionConfig, at: Location, mistakes: Mistakes) -> None:
    if not config.model_fields_set & {"changes", "query", "headers"}:
        mistakes.add("'changes' is missing here; add it, empty where the bodies are the same", *at)
    if config.on == "errors" and not config.statuses:
        mistakes.add("says not which errors; add statuses, such as [4xx]", *at, "on")
    if config.on == "requests" and config.statuses:
        mistakes.add("requests have no status; remove it, or on: requests", *at, "statuses")
    if config.query and config.on in ("responses", "errors"):
        mistakes.add(f"{config.on} have no query; remove it, or on: {config.on}", *at, "query")


def _warn(config: ConversionConfig, at: Location, mistakes: Mistakes) -> None:
    for key in ("changes", "query", "headers"):
        for index, entry in enumerate(getattr(config, key)):
            for name, change in entry.named().items():
                for newer, text in change.losses():
                    lossy = f"warning: lossy towards version {config.between[newer]}: {text}"
                    mistakes.warn(lossy, *at, key, index, name)


def _statuses(text: str) -> range:
    first = int(text.replace("x", "0"))
    return range(first, first + 100 if "x" in text else first + 1)


def _each(
    entries: Sequence[ChangeEntry[S]],
    at: Location,
    mistakes: Mistakes,
    build: Callable[[S, Location], T | None],
) -> Iterator[T]:
    """Yield the changes that can be made; each entry is to be exactly one."""
    for index, entry in enumerate(entries):
        named = entry.named()
        if len(named) != 1:
            known = ", ".join(type(entry).model_fields)
            mistakes.add(f"a change is exactly one of {known}", *at, index)
            continue
        ((name, section),) = named.items()
        change = build(section, (*at, index, name))
        if change is not None:
            yield change
