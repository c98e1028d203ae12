"""Links: from a part of `conversions:` in gateway.yaml to a link of the core."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

from gateway.base.mistakes import LOSSY, Location, Mistake, Mistakes
from gateway.conversion.change import Change, Whole
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.change_section import BodySection, ChangeSection
from gateway.conversion.changes.kept import kept_parameter
from gateway.conversion.changes.registry import ChangeConfig, ParameterConfig
from gateway.conversion.declared.conflicts import AskedPaths, LinkOverlap, find_conflicts
from gateway.conversion.declared.conversion import ConversionConfig, FormsConfig
from gateway.conversion.declared.groups import (
    DeclaredChange,
    GroupConfigs,
    Part,
    declared_changes,
    endless,
    listed_changes,
)
from gateway.conversion.declared.operations import OperationsBuilder, build_statuses
from gateway.conversion.operation import MappedOperation
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.version_step import BOTH, FormTypes, MessageKind, VersionLink
from gateway.http.upstream.service import Service
from gateway.versions.version import Version

S = TypeVar("S", bound=ChangeSection)
T = TypeVar("T")

_ON = {
    "both": BOTH,
    "requests": frozenset({MessageKind.REQUEST}),
    "responses": frozenset({MessageKind.RESPONSE}),
    "errors": frozenset({MessageKind.ERROR}),
}


class ChangeGroups(NamedTuple):
    """The groups of an API, as they are declared, and the changes that they became."""

    configs: GroupConfigs
    changes: Mapping[str, tuple[Change, ...]]


def build_groups(configs: GroupConfigs, at: Location, mistakes: Mistakes) -> ChangeGroups:
    """Return the groups of an API; what is wrong with them goes to `mistakes`."""
    changes: dict[str, tuple[Change, ...]] = dict.fromkeys(configs, ())
    for name in endless(configs):
        mistakes.add(
            "uses itself for the same object, without end; add at, such as children[]", *at, name
        )

    def build(section: BodySection, here: Location) -> Change | None:
        change = section.body_change(BodyContext(here, mistakes, changes))
        if isinstance(change, Whole):
            mistakes.add("is of the whole body here, and groups are of objects; add field", *here)
        return change

    for name, entries in configs.items():
        named = [entry.named() for entry in entries]
        changes[name] = tuple(_each(named, (*at, name), mistakes, build))
    return ChangeGroups(configs, changes)


def build_link(
    config: ConversionConfig,
    older: Version,
    newer: Version,
    at: Location,
    mistakes: Mistakes,
    groups: ChangeGroups | None = None,
    operations: tuple[MappedOperation, ...] | None = None,
) -> VersionLink:
    """Return the link between two adjacent versions; what is wrong with it goes to `mistakes`.

    Args:
        config: the conversion as configured.
        older: the older version.
        newer: the newer version.
        at: the location of the conversion.
        mistakes: collects the mistakes.
        groups: the groups of changes that it may use.
        operations: the operations that it applies to; None for all.
    """
    groups = groups or ChangeGroups({}, {})
    _check(config, at, mistakes)
    _warn(config, at, mistakes, groups.configs)

    def parameters(key: str, entries: Sequence[ParameterConfig]) -> tuple[ParameterChange, ...]:
        return tuple(
            _each(
                [entry.named() for entry in entries],
                (*at, key),
                mistakes,
                lambda section, here: section.parameter_change(
                    ParameterContext(here, mistakes, header=key == "headers")
                ),
            )
        )

    query = parameters("query", config.query)
    changes = declared_changes(config.changes, (*at, "changes"), groups.configs, ())
    sections = [change.section for change in changes]
    beside = [one for entry in (*config.query, *config.headers) for one in entry.named().values()]
    timeouts = [limit for section in sections if (limit := section.seconds()) is not None]
    if config.unfit == "keep":
        query = tuple(map(kept_parameter, query))
    return VersionLink(
        older,
        newer,
        tuple(
            _each(
                [entry.named() for entry in config.changes],
                (*at, "changes"),
                mistakes,
                lambda section, here: section.body_change(
                    BodyContext(here, mistakes, groups.changes, (older, newer))
                ),
            )
        ),
        statuses=frozenset(status for text in config.statuses for status in _statuses(text)),
        on=_ON[config.on],
        methods=None if config.methods is None else frozenset(config.methods),
        paths=None if config.paths is None else frozenset(config.paths),
        query=query,
        headers=parameters("headers", config.headers),
        operations=operations,
        status=build_statuses(config.status, (*at, "status"), mistakes),
        maps_links=any(change.maps_links for change in sections),
        digest=_digest(config, groups.configs, [change.code for change in sections]),
        varies=any(change.varies for change in sections),
        needs_message=any(change.needs_message for change in sections),
        shows_message=any(change.needs_message for change in beside),
        timeout=sum(timeouts) if timeouts else None,
        forms=_forms(config.forms),
        events=config.events,
        keeps_unfit=config.unfit == "keep",
    )


def _forms(config: FormsConfig | None) -> "FormTypes | None":
    if config is None:
        return None

    return FormTypes(config.version == "newer", config.numbers, config.booleans, config.lists)


def _digest(config: ConversionConfig, groups: GroupConfigs, code: list[str]) -> str:
    rules = json.dumps(_written((config, groups)), sort_keys=True, default=str) + "".join(code)
    return blake2b(rules.encode(), digest_size=16).hexdigest()


def _written(value: object) -> object:
    # As a file has it. pydantic's model_dump would first build a serializer for every model.
    if isinstance(value, BaseModel):
        return {name: _written(getattr(value, name)) for name in value.model_fields_set}
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    return value


def _check(config: ConversionConfig, at: Location, mistakes: Mistakes) -> None:
    said = {"changes", "query", "headers", "operations", "status", "forms", "events"}
    if not config.model_fields_set & said:
        mistakes.add("'changes' is missing here; add it, empty where the bodies are the same", *at)
    if config.on == "errors" and not config.statuses:
        mistakes.add("needs the statuses of the errors; add statuses, such as [4xx]", *at, "on")
    if config.on == "requests" and config.statuses:
        mistakes.add("requests have no status; remove it, or on: requests", *at, "statuses")
    if config.forms and config.on in ("responses", "errors"):
        mistakes.add(f"{config.on} are no forms; remove it, or on: {config.on}", *at, "forms")
    if config.unfit == "keep" and config.on in ("responses", "errors"):
        mistakes.add(f"is for requests; remove it, or on: {config.on}", *at, "unfit")
    if config.query and config.on in ("responses", "errors"):
        mistakes.add(f"{config.on} have no query; remove it, or on: {config.on}", *at, "query")


def _warn(config: ConversionConfig, at: Location, mistakes: Mistakes, groups: GroupConfigs) -> None:
    parameters = (
        DeclaredChange((*at, key, index, name), section)
        for key, entries in (("query", config.query), ("headers", config.headers))
        for index, entry in enumerate(entries)
        for name, section in entry.named().items()
    )
    changes = listed_changes(config.changes, (*at, "changes"), groups, (*at[:-2], "groups"))
    for change in (*changes, *parameters):
        for loss in change.section.losses():
            lossy = f"{LOSSY} version {config.between[loss.newer]}: {loss.text}"
            # The same group may be used by several conversions between the same versions.
            if Mistake(change.at, lossy) not in mistakes.warnings:
                mistakes.warn(lossy, *change.at)


def _statuses(text: str) -> range:
    first = int(text.replace("x", "0"))
    return range(first, first + 100 if "x" in text else first + 1)


def _each(
    entries: Sequence[Mapping[str, S]],
    at: Location,
    mistakes: Mistakes,
    build: Callable[[S, Location], T | None],
) -> Iterator[T]:
    """Yield the changes that can be made; each entry is to be exactly one."""
    for index, named in enumerate(entries):
        if len(named) != 1:
            found = f"names {' and '.join(named)}" if named else "names no change"
            text = f"{found}; an entry is one change, such as rename: {{ field: a, to: b }}"
            mistakes.add(text, *at, index)
            continue
        ((name, section),) = named.items()
        change = build(section, (*at, index, name))
        if change is not None:
            yield change


@dataclass(frozen=True, slots=True)
class LinksBuilder:
    """Builds the links between the versions of one API; mistakes go to `mistakes`.

    Attributes:
        conversions: the conversions of the API as configured.
        groups: the groups of the API as configured, by name.
        versions: the versions of the API, the oldest first, by label.
        services: the services by name.
        api: the location of the API.
        check_paths: a function that checks the paths which a conversion names, at its location.
        mistakes: collects the mistakes.
        operations: the operations of the conversions.
    """

    conversions: Sequence[ConversionConfig]
    groups: Mapping[str, Sequence[ChangeConfig]]
    versions: Mapping[str, Version]
    services: Mapping[str, Service]
    api: Location
    check_paths: Callable[[Sequence[str], Location], None]
    mistakes: Mistakes
    operations: OperationsBuilder = field(init=False)
    _parts: dict[Version, list[Part]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        at = (*self.api, "conversions")
        configs = [(config, (*at, index)) for index, config in enumerate(self.conversions)]
        builder = OperationsBuilder(configs, self.services, self.mistakes)
        object.__setattr__(self, "operations", builder)

    def build(self) -> dict[Version, list[VersionLink]]:
        """Return the declared changes between neighbouring versions, by the older version."""
        ladder = list(self.versions.values())
        groups = build_groups(self.groups, (*self.api, "groups"), self.mistakes)
        applied = self.operations.build()
        for index, conversion in enumerate(self.conversions):
            at = (*self.api, "conversions", index)
            older, newer = (
                self.mistakes.look_up(label, self.versions, "version", *at, "between", place)
                for place, label in enumerate(conversion.between)
            )
            if older is None or newer is None:
                continue
            if older >= newer or ladder.index(newer) != ladder.index(older) + 1:
                self.mistakes.add(
                    "name two neighbours, the older one first; the versions are"
                    f" {', '.join(self.versions)}",
                    *at,
                    "between",
                )
            else:
                self.check_paths(conversion.paths or (), at)
                link = build_link(
                    conversion, older, newer, at, self.mistakes, groups, applied[index]
                )
                parts = self._parts.setdefault(older, [])
                parts.append(Part(conversion, at, link, groups.configs))
        return self._links

    def check(self, asked: AskedPaths) -> None:
        """Report links that do not go together, and warn of operations that nothing leads to.

        Args:
            asked: the paths of the endpoints, each with the one that services are asked for.
        """
        ways = dict.fromkeys(asked)
        self.operations.warn_unreached(path for _, path in ways)
        meeting = LinkOverlap(ways, self._links)
        for parts in self._parts.values():
            for index, part in enumerate(parts):
                before = [one for one in parts[:index] if meeting.overlap(one.link, part.link)]
                find_conflicts(part, before, self.mistakes)

    @property
    def _links(self) -> dict[Version, list[VersionLink]]:
        return {older: [part.link for part in some] for older, some in self._parts.items()}
