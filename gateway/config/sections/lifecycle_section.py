"""The lifecycles of an API's versions: dates in order, successors that outlive them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from urllib.parse import quote

from gateway.config.sections.lifecycle_models import LifecycleConfig, exemptions
from gateway.config.text.dates import format_date, parse_date
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.clients import ClientNaming
from gateway.core.lifecycle.lifecycle import Lifecycle, Successor, Terms, lifecycle
from gateway.core.routing import Template
from gateway.core.versions.readers import AcceptReader, HeaderReader, QueryReader, Reader
from gateway.core.versions.version import Version


@dataclass(frozen=True, slots=True)
class VersionEnd:
    """How a version ends, and which versions follow it, the next one first."""

    terms: Terms
    heirs: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class LifecycleBuilder:
    """Builds the lifecycles of one API; what is wrong goes to `mistakes`.

    Attributes:
        versions: by label.
        configs: the lifecycles by label, where a version has one.
        naming: how clients are named, if they are.
        at: where the versions stand.
        mistakes: takes what is wrong.
    """

    versions: Mapping[str, Version]
    configs: Mapping[str, LifecycleConfig]
    naming: ClientNaming | None
    at: Location
    mistakes: Mistakes

    def endings(self) -> dict[Version, VersionEnd]:
        """Return how versions end, of those that do."""
        terms = {
            self.versions[label]: self._terms(label, config)
            for label, config in self.configs.items()
            if label in self.versions
        }
        heirs = {
            self.versions[label]: self._heir(label, config.successor, terms)
            for label, config in self.configs.items()
            if label in self.versions and config.successor is not None
        }
        return {version: VersionEnd(terms[version], _line(version, heirs)) for version in terms}

    def _terms(self, label: str, config: LifecycleConfig) -> Terms:
        at = (*self.at, label, "lifecycle")
        if config.deprecated is None and config.sunset is None:
            self.mistakes.add("says no date; add deprecated or sunset", *at)
        deprecated = self._date(config.deprecated, *at, "deprecated")
        sunset = self._date(config.sunset, *at, "sunset")
        if deprecated is not None and sunset is not None and sunset < deprecated:
            self.mistakes.add(
                f"ends before it is deprecated, which is {config.deprecated};"
                " name a later date, or deprecate it earlier",
                *at,
                "sunset",
            )
        ends = inf if sunset is None else sunset
        if config.exempt and sunset is None:
            self.mistakes.add("nothing ends that is to end later; add sunset", *at, "exempt")
        exempt = exemptions(
            config.exempt, self.naming, (*at, "exempt"), self.mistakes, sunset or -inf
        )
        return Terms(self.versions[label], deprecated, ends, config.link, exempt)

    def _heir(self, label: str, named: str, terms: Mapping[Version, Terms]) -> Version | None:
        at = (*self.at, label, "lifecycle", "successor")
        heir = self.mistakes.look_up(named, self.versions, "version", *at)
        if heir is None:
            return None
        version = self.versions[label]
        if heir <= version:
            self.mistakes.add(f"is not newer than version {label}; name a later one", *at)
            return None
        ends, until = terms[version].sunset, terms[heir].sunset if heir in terms else inf
        if until < inf and until <= ends:
            later = "which has no sunset" if ends == inf else f"which does on {format_date(ends)}"
            self.mistakes.add(
                f"version {named} ends on {format_date(until)}, no later than version {label},"
                f" {later}; name one that lasts longer",
                *at,
            )
        return heir

    def _date(self, text: str | None, *location: str | int) -> float | None:
        return None if text is None else self.mistakes.attempt(partial(parse_date, text), *location)


def _line(version: Version, heirs: Mapping[Version, Version | None]) -> tuple[Version, ...]:
    line = []
    following = heirs.get(version)
    while following is not None:  # ends, as every heir is newer
        line.append(following)
        following = heirs.get(following)
    return tuple(line)


def lifecycle_at(
    version: Version,
    endings: Mapping[Version, VersionEnd],
    template: Template,
    readers: tuple[Reader, ...],
) -> Lifecycle:
    """Return the lifecycle of a version, one of `endings`, as an endpoint tells it."""
    ending = endings[version]
    successors = (
        _successor(heir, endings[heir].terms if heir in endings else None, template, readers)
        for heir in ending.heirs
    )
    return lifecycle(ending.terms, tuple(successors))


def _successor(
    version: Version, terms: Terms | None, template: Template, readers: tuple[Reader, ...]
) -> Successor:
    # One of the readers suffices, and first the one of which a link can say most.
    query = header = media_type = None
    for reader in readers:
        match reader:
            case QueryReader(name=name):
                query = f"{quote(name)}={version}"
            case HeaderReader(name=name):
                header = name
            case AcceptReader():
                media_type = reader.media_type(version)
    if "version" in template.captures:
        return Successor(version, terms, template)
    if query is not None:
        return Successor(version, terms, template, query=query)
    if media_type is not None:
        return Successor(version, terms, template, media_type=media_type)
    return Successor(version, terms, template, header=header)
