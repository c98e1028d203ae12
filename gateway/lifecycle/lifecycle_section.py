"""`lifecycle` in gateway.yaml: when a version is deprecated, when it ends, and what follows it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Annotated

from gateway.access.clients import ClientNaming
from gateway.base.dates import format_date, parse_date
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import Date, SectionModel, matching
from gateway.base.path_templates import Template
from gateway.conversion.chain import Conversion
from gateway.lifecycle.exemptions import SunsetExemptionConfig, build_exemptions
from gateway.lifecycle.lifecycle import Lifecycle, Successor, Terms, lifecycle
from gateway.versions.reader import IN_PATH, Reader
from gateway.versions.version import Version

PageUrl = Annotated[
    str,
    matching(
        r"^https?://[!#-;=?-Z\[\]_a-z~]+$",
        "not the URL of a page; write one like https://example.com/v1-ends",
    ),
]


class LifecycleConfig(SectionModel):
    """How the version ends. A date is a day such as 2026-12-31, from 00:00 UTC on, or a time."""

    deprecated: Date | None = None
    """The date from which on the version is deprecated. Every answer has it in its Deprecation
    header (RFC 9745). Without it, the version is not deprecated."""
    sunset: Date | None = None
    """The date on which the version ends. Every answer before has it in its Sunset header (RFC
    8594), and every request from then on is answered 410. Without it, the version does not end."""
    link: PageUrl | None = None
    """The URL of a page about the end of the version. Answers link to it."""
    successor: str | None = None
    """The later version that clients should use instead. Answers link to it."""
    exempt: tuple[SunsetExemptionConfig, ...] = ()
    """The clients for which the version ends later. By default, there are none."""


@dataclass(frozen=True, slots=True)
class VersionEnd:
    """How a version ends, and the versions that succeed it, the next one first."""

    terms: Terms
    successors: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class LifecycleBuilder:
    """Builds the lifecycles of one API; mistakes go to `mistakes`.

    Attributes:
        versions: the versions of the API by label.
        configs: the lifecycles by label, for the versions that have one.
        naming: how clients get their names; None where they have none.
        at: the location of the versions.
        mistakes: collects the mistakes.
    """

    versions: Mapping[str, Version]
    configs: Mapping[str, LifecycleConfig]
    naming: ClientNaming | None
    at: Location
    mistakes: Mistakes

    def endings(self) -> dict[Version, VersionEnd]:
        """Return how versions end, for those that have a lifecycle."""
        terms = {
            self.versions[label]: self._terms(label, config)
            for label, config in self.configs.items()
            if label in self.versions
        }
        successors = {
            self.versions[label]: self._successor(label, config.successor, terms)
            for label, config in self.configs.items()
            if label in self.versions and config.successor is not None
        }
        return {
            version: VersionEnd(terms[version], _chain(version, successors)) for version in terms
        }

    def _terms(self, label: str, config: LifecycleConfig) -> Terms:
        at = (*self.at, label, "lifecycle")
        if config.deprecated is None and config.sunset is None:
            self.mistakes.add("has no date; add deprecated or sunset", *at)
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
        exempt = build_exemptions(
            config.exempt, self.naming, (*at, "exempt"), self.mistakes, sunset or -inf
        )
        return Terms(self.versions[label], deprecated, ends, config.link, exempt)

    def _successor(self, label: str, named: str, terms: Mapping[Version, Terms]) -> Version | None:
        at = (*self.at, label, "lifecycle", "successor")
        successor = self.mistakes.look_up(named, self.versions, "version", *at)
        if successor is None:
            return None
        version = self.versions[label]
        if successor <= version:
            self.mistakes.add(f"is not newer than version {label}; name a later one", *at)
            return None
        ends, until = terms[version].sunset, terms[successor].sunset if successor in terms else inf
        if until < inf and until <= ends:
            later = "which has no sunset" if ends == inf else f"which does on {format_date(ends)}"
            self.mistakes.add(
                f"version {named} ends on {format_date(until)}, no later than version {label},"
                f" {later}; name one that lasts longer",
                *at,
            )
        return successor

    def _date(self, text: str | None, *location: str | int) -> float | None:
        return None if text is None else self.mistakes.attempt(partial(parse_date, text), *location)


def _chain(version: Version, successors: Mapping[Version, Version | None]) -> tuple[Version, ...]:
    chain = []
    following = successors.get(version)
    while following is not None:  # it ends, as every successor is newer
        chain.append(following)
        following = successors.get(following)
    return tuple(chain)


def lifecycle_at(
    version: Version,
    endings: Mapping[Version, VersionEnd],
    template: Template,
    readers: tuple[Reader, ...],
    between: Callable[[Version, Version], Conversion | None],
    own: Collection[Version],
) -> Lifecycle:
    """Return the lifecycle of a version, one of `endings`, as an endpoint announces it.

    Args:
        version: the version.
        endings: how versions end.
        template: the template of the endpoint's path.
        readers: the readers of the endpoint.
        between: returns the conversion between two versions at the endpoint, if operations differ.
        own: the versions that have the endpoint.
    """
    ending = endings[version]
    successors = (
        _successor(
            later,
            endings[later].terms if later in endings else None,
            template,
            readers,
            _both(between(version, later), between(later, version)),
        )
        for later in ending.successors
        if later in own
    )
    return lifecycle(ending.terms, tuple(successors))


def _both(
    request: Conversion | None, response: Conversion | None
) -> tuple[Conversion, Conversion] | None:
    return None if request is None or response is None else (request, response)


def _successor(
    version: Version,
    terms: Terms | None,
    template: Template,
    readers: tuple[Reader, ...],
    conversions: tuple[Conversion, Conversion] | None,
) -> Successor:
    # One of the readers suffices: the one whose address has most in a link.
    addresses = (reader.address(version) for reader in readers)
    best = min(addresses, key=lambda address: address.rank, default=IN_PATH)
    return Successor(version, terms, template, best, conversions)
