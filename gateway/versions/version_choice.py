"""The keys of an API that choose a version: format, matching, defaults, pins, and its header."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from gateway.access.clients import ClientNaming
from gateway.base.headers import SPOKEN_FOR, FieldLines
from gateway.base.mistakes import Location, Mistakes, suggest
from gateway.base.model import ClientName, FieldName, OneOrSome, SectionModel, matching
from gateway.versions.matching import EXACT, Matching
from gateway.versions.mechanisms.header import RESERVED_NAME
from gateway.versions.version import Format, Version, parse

_FORMAT_MESSAGES = {
    Format.INTEGER: 'a version is a whole number in plain digits, such as "1"',
    Format.SEMANTIC: (
        "not a semantic version; write major, minor and patch, such as 1.4.0 or 1.4.0-rc.1, and no"
        " build metadata"
    ),
    Format.DATE: "not a date of the calendar; write it like 2026-01-31",
}


VersionFormat = Literal["integer", "semantic", "date"]
# As a segment of a path, a label of a host name or a part of a media type may be written.
Alias = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$",
        "not a name for a version; write up to 64 letters, digits, '.', '_' and '-', as in latest",
    ),
]


class VersionChoiceConfig(SectionModel):
    """How an API chooses a version, apart from what its endpoints read from a request."""

    version_format: OneOrSome[VersionFormat, VersionFormat] = "integer"
    """The format of the API's versions: 2 (integer), 1.4.0 (semantic, which is Semantic
    Versioning) or 2026-01-31 (date), or a list of them for an API that has changed its format:
    integers come first, dates last. The default is integer."""
    aliases: dict[Alias, str] = Field(default_factory=dict)
    """Other names by which requests may name versions, such as `latest` or `v2`. By default, there
    are none."""
    match: Literal["exact", "nearest_lower"] = "exact"
    """What a request gets that names a version which the API does not have: a refusal (exact) or
    the newest version before it (nearest_lower). The default is exact."""
    ranges: bool = False
    """Whether requests may name ranges: `1.2+` is the newest version from 1.2 on, `1.x` the newest
    of those that begin with 1. The default is false."""
    default_version: str | None = None
    """The version to serve when a request names none. An endpoint may have its own default.
    Without both, default_version at the top counts."""
    pins: dict[ClientName, str] = Field(default_factory=dict)
    """The versions that clients get when their requests name none, by the name of the client. By
    default, no client is pinned."""
    version_header: FieldName | None = None
    """The response header that names the served version. Without it, version_header at the top
    counts."""


class VersionDefaults(NamedTuple):
    """The settings at the top of gateway.yaml that matter to the choice of versions in every API.

    Attributes:
        default_version: the version for requests that name none, where an API has it.
        version_header: the response header that names the served version.
        vary: the request headers that give clients their names; `*` stands for the address.
    """

    default_version: str | None
    version_header: str | None
    vary: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """How every endpoint of an API chooses a version, apart from what it reads from a request.

    Attributes:
        default: the version to serve when a request names none.
        matching: which texts name a version, apart from its label.
        pins: the versions that clients get when their requests name none.
        header: the response header that names the served version.
        vary: the request headers that give clients their names; `*` stands for the address.
    """

    default: Version | None = None
    matching: Matching = EXACT
    pins: Mapping[str, Version] = field(default_factory=dict)
    header: str | None = None
    vary: tuple[str, ...] = ()

    def fields(self, version: Version | None) -> FieldLines:
        """Return the header fields of responses of a version."""
        if self.header is None or version is None:
            return ()
        return ((self.header.encode(), str(version).encode()),)


class ChoiceBuilder(NamedTuple):
    """Builds how an API chooses a version; mistakes go to `mistakes`.

    Attributes:
        api: the name of the API.
        config: its keys as configured.
        has_versions: whether the API has versions.
        defaults: what holds where the API has no setting of its own.
        naming: how clients get their names; None where they have none.
        mistakes: collects the mistakes.
    """

    api: str
    config: VersionChoiceConfig
    has_versions: bool
    defaults: VersionDefaults
    naming: ClientNaming | None
    mistakes: Mistakes

    @property
    def at(self) -> Location:
        """Return the location of the API."""
        return ("apis", self.api)

    @property
    def _formats(self) -> tuple[Format, ...]:
        named = self.config.version_format
        return tuple(map(Format, (named,) if isinstance(named, str) else dict.fromkeys(named)))

    def _aliases(self, versions: Mapping[str, Version]) -> dict[str, Version]:
        aliases = {}
        for alias, label in self.config.aliases.items():
            at = (*self.at, "aliases", alias)
            version = self.mistakes.look_up(label, versions, "version", *at)
            if alias in versions:
                self.mistakes.add("is a version itself; choose another name", *at)
            elif version is not None:
                aliases[alias] = version
        return aliases

    def versions(self, labels: Collection[str]) -> dict[str, Version]:
        """Return the versions by label, the oldest first, without those whose label is wrong."""
        versions = {}
        for label in labels:
            version = self.mistakes.attempt(
                partial(_parse, label, labels, *self._formats),
                *self.at,
                "versions",
                label,
            )
            if version is not None:
                versions[label] = version
        return dict(sorted(versions.items(), key=lambda item: item[1]))

    def build(self, versions: Mapping[str, Version]) -> Choice:
        """Return how the API chooses among its versions."""
        if not self.has_versions:
            for key in VersionChoiceConfig.model_fields:
                if key in self.config.model_fields_set:
                    self.mistakes.add(
                        "without versions, there is nothing to choose; remove it", *self.at, key
                    )
            return Choice()
        return Choice(
            self._default(versions),
            Matching(
                tuple(versions.values()),
                self._formats,
                nearest_lower=self.config.match == "nearest_lower",
                ranges=self.config.ranges,
                aliases=self._aliases(versions),
            ),
            self._pins(versions),
            self._header(),
            self.defaults.vary,
        )

    def _default(self, versions: Mapping[str, Version]) -> Version | None:
        own, common = self.config.default_version, self.defaults.default_version
        if own is not None:
            return self.mistakes.look_up(own, versions, "version", *self.at, "default_version")
        if common is None:
            return None
        if common not in versions:
            self.mistakes.add(
                f"the API {self.api} has no version '{common}'; {suggest(common, versions)};"
                " give it a default_version of its own",
                "default_version",
            )
        return versions.get(common)

    def _header(self) -> str | None:
        name = self.defaults.version_header
        at: Location = ("version_header",)
        if self.config.version_header is not None:
            name, at = self.config.version_header, (*self.at, "version_header")
        if name is not None and name.lower().encode() in SPOKEN_FOR:
            self.mistakes.add(RESERVED_NAME, *at)
        return name

    def _pins(self, versions: Mapping[str, Version]) -> dict[str, Version]:
        if self.config.pins and self.naming is None:
            self.mistakes.add(
                "nothing names clients, so that none can be pinned; add what does, at the top:"
                " clients: { by: [ { header: X-Client } ] }",
                *self.at,
                "pins",
            )
            return {}
        pins = {}
        for client, label in self.config.pins.items():
            version = self.mistakes.look_up(label, versions, "version", *self.at, "pins", client)
            if version is not None and self.naming is not None:
                pins[self.naming.known_as(client)] = version
        return pins


def _parse(label: str, labels: Collection[str], *formats: Format) -> Version:
    version = parse(label, *formats)
    if version is not None:
        return version
    remedy = ""
    if parse(label, *Format) is not None:
        # Those of the other versions too, so that the remedy of one is no mistake of another.
        needed = [str(one) for one in Format if any(parse(each, one) for each in labels)]
        written = f"[{', '.join(needed)}]" if needed[1:] else needed[0]
        remedy = f"; for such versions, write version_format: {written}"
    raise ValueError("; ".join(_FORMAT_MESSAGES[each] for each in formats) + remedy)
