"""The settings with which an API chooses a version: format, matching, default, pins, header."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from gateway.access.clients import ClientNaming
from gateway.base.headers import RESERVED_FIELDS, FieldLines
from gateway.base.mistakes import Mistakes, suggest
from gateway.base.model import ClientName, FieldName, OneOrSome, SectionModel, matching
from gateway.versions.matching import EXACT, Matching
from gateway.versions.mechanisms.header import RESERVED_NAME
from gateway.versions.version import LABEL, Format, Version, parse

_FORMAT_MESSAGES = {
    Format.INTEGER: 'a version is a whole number in plain digits, such as "1"',
    Format.SEMANTIC: (
        "not a semantic version; write major and minor, such as 1.4, 1.4.0 or 1.4.0-rc.1, and no"
        " build metadata"
    ),
    Format.DATE: ("not a calendar date; write it like 2026-01-31, 2026-01 or 2026-01-31-preview"),
}


VersionFormat = Literal["integer", "semantic", "date"]
Label = Annotated[
    str,
    matching(
        rf"^{LABEL}$",
        "not a version label; write up to 64 letters, digits, '.', '_', '~' and '-', as in"
        " v1beta1 or 2026-01-31",
    ),
]


class VersionChoice(SectionModel):
    """The selection of versions in an API, apart from the mechanisms of its endpoints."""

    version_format: OneOrSome[VersionFormat, VersionFormat] | None = None
    """The format of the labels: 2 (integer), 1.4.0 or 1.4 (semantic, which is Semantic Versioning)
    or 2026-01-31, 2026-01 and 2026-01-31-preview (date). A list is for an API that has changed its
    format. With a format, labels are checked, and `match` and `ranges` can compare versions. By
    default, whole numbers have the format integer, and other labels are free."""
    aliases: dict[Label, str] = Field(default_factory=dict)
    """Other names by which requests may name versions, such as `latest` or `v2`. By default, there
    are none."""
    match: Literal["exact", "nearest_lower"] = "exact"
    """The result if a request names a version that the API does not have: a refusal (exact) or the
    newest version before it (nearest_lower). The default is exact."""
    ranges: bool = False
    """Whether requests may name ranges: `1.2+` is the newest version from 1.2 on, `1.x` the newest
    version that begins with 1. The default is false."""
    default_version: str | None = None
    """The version that requests without a version get. An endpoint may have its own default. If
    neither is set, default_version at the top level applies."""
    pins: dict[ClientName, str] = Field(default_factory=dict)
    """The versions that clients get if their requests name no version, by client name. By default,
    no client is pinned."""
    version_header: FieldName | None = None
    """The response header that names the served version. Without it, version_header at the top
    level applies."""

    def compile_versions(self, labels: Iterable[str], mistakes: Mistakes) -> dict[str, Version]:
        """Return the versions by label, the oldest first, without invalid labels."""
        labels = [*labels]
        formats = self._formats(labels)
        if self.version_format is None and formats:
            labels.sort(key=int)
        versions, newest = dict[str, Version](), dict[type, tuple[str, Any]]()
        for label in labels:
            mistake = _mistake(label, labels, *formats)
            if mistake is not None:
                mistakes.add(mistake, "versions", label)
                continue
            versions[label] = Version(len(versions) + 1, label)
            parsed = parse(label, *formats)
            if parsed is None:
                continue
            last, number = newest.get(type(parsed.number), (label, parsed.number))
            if parsed.number < number:
                text = f"is listed after {last} but is older; list the versions from old to new"
                mistakes.add(text, "versions", label)
            newest[type(parsed.number)] = label, parsed.number
        return versions

    def _formats(self, labels: Collection[str]) -> tuple[Format, ...]:
        named = self.version_format
        if named is None:
            are_integers = all(parse(label, Format.INTEGER) for label in labels)
            return (Format.INTEGER,) if are_integers else ()
        return tuple(map(Format, (named,) if isinstance(named, str) else dict.fromkeys(named)))

    def compile_choice(
        self,
        versions: Mapping[str, Version] | None,
        defaults: "ChoiceDefaults",
        mistakes: Mistakes,
    ) -> "Choice":
        """Return the compiled settings; `versions` is None for an API without versions."""
        if versions is None:
            for key in VersionChoice.model_fields:
                if key in self.model_fields_set:
                    text = "without versions, there is nothing to choose; remove it"
                    mistakes.add(text, key)
            return Choice()
        formats = self._formats(versions)
        for key in ("match", "ranges"):
            if not formats and key in self.model_fields_set:
                text = "compares versions, which needs their format; add version_format"
                mistakes.add(text, key)
        return Choice(
            self._default(versions, defaults, mistakes),
            Matching(
                tuple(versions.values()),
                formats,
                nearest_lower=self.match == "nearest_lower",
                ranges=self.ranges,
                aliases=self._aliases(versions, mistakes),
            ),
            self._pins(versions, defaults.naming, mistakes),
            self._header(defaults, mistakes),
            defaults.vary,
        )

    def _default(
        self,
        versions: Mapping[str, Version],
        defaults: "ChoiceDefaults",
        mistakes: Mistakes,
    ) -> Version | None:
        own, common = self.default_version, defaults.version
        if own is not None:
            return mistakes.look_up(own, versions, "version", "default_version")
        if common is None:
            return None
        if common not in versions:
            mistakes.root.add(
                f"the API {mistakes.at[-1]} has no version '{common}'; {suggest(common, versions)};"
                " give it a default_version of its own",
                "default_version",
            )
        return versions.get(common)

    def _aliases(self, versions: Mapping[str, Version], mistakes: Mistakes) -> dict[str, Version]:
        aliases = {}
        for alias, label in self.aliases.items():
            version = mistakes.look_up(label, versions, "version", "aliases", alias)
            if alias in versions:
                mistakes.add("is a version itself; choose another name", "aliases", alias)
            elif version is not None:
                aliases[alias] = version
        return aliases

    def _pins(
        self,
        versions: Mapping[str, Version],
        naming: ClientNaming | None,
        mistakes: Mistakes,
    ) -> dict[str, Version]:
        if self.pins and naming is None:
            mistakes.add(
                "clients have no names, so none can be pinned; add their source at the top:"
                " clients: { by: [ { header: X-Client } ] }",
                "pins",
            )
            return {}
        pins = {}
        for client, label in self.pins.items():
            version = mistakes.look_up(label, versions, "version", "pins", client)
            if version is not None and naming is not None:
                pins[naming.known_as(client)] = version
        return pins

    def _header(self, defaults: "ChoiceDefaults", mistakes: Mistakes) -> str | None:
        name, here = defaults.version_header, mistakes.root
        if self.version_header is not None:
            name, here = self.version_header, mistakes
        if name is not None and name.lower().encode() in RESERVED_FIELDS:
            here.add(RESERVED_NAME, "version_header")
        return name


class ChoiceDefaults(NamedTuple):
    """The top-level settings of gateway.yaml for the choice of versions.

    Attributes:
        vary: the request headers that identify clients; `*` if clients are identified by their
            address.
        naming: the sources of client names; None if clients have no names.
    """

    version: str | None
    version_header: str | None
    vary: tuple[str, ...]
    naming: ClientNaming | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The version settings that the endpoints of an API share, besides their mechanisms.

    Attributes:
        vary: the request headers that identify clients; `*` if clients are identified by their
            address.
    """

    default: Version | None = None
    matching: Matching = EXACT
    pins: Mapping[str, Version] = field(default_factory=dict)
    header: str | None = None
    vary: tuple[str, ...] = ()

    def fields(self, version: Version | None) -> FieldLines:
        if self.header is None or version is None:
            return ()
        return ((self.header.encode(), str(version).encode()),)


def _mistake(label: str, labels: Collection[str], *formats: Format) -> str | None:
    if label in (".", ".."):
        return "is a step in a path (RFC 3986, section 5.2.4); choose another label"
    if not formats or parse(label, *formats) is not None:
        return None
    remedy = "; without version_format, any label is accepted"
    if parse(label, *Format) is not None:
        # Considers all labels of the API, so that the suggested formats fit the other versions too.
        needed = [str(one) for one in Format if any(parse(each, one) for each in labels)]
        written = f"[{', '.join(needed)}]" if needed[1:] else needed[0]
        remedy = f"; for such versions, write version_format: {written}"
    return "; ".join(_FORMAT_MESSAGES[each] for each in formats) + remedy
