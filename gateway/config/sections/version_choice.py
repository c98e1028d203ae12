"""How an API chooses a version, beside what a request says: defaults, pins, matching."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.config.sections import root_section
from gateway.config.sections.client_models import ClientsConfig
from gateway.config.text.mistakes import Location, Mistakes, suggest
from gateway.core.clients import ClientNaming
from gateway.core.headers import SPOKEN_FOR, FieldLines
from gateway.core.versions.matching import EXACT, Matching
from gateway.core.versions.version import Format, Version, parse

_WRITTEN = {
    Format.INTEGER: 'a version is a whole number in plain digits, such as "1"',
    Format.SEMANTIC: (
        "not a semantic version; write major, minor and patch, such as 1.4.0 or 1.4.0-rc.1, and no"
        " build metadata"
    ),
    Format.DATE: "not a date of the calendar; write it like 2026-01-31",
}
# What an API has to say only where it has versions.
_OF_VERSIONS = (
    "version_format",
    "match",
    "ranges",
    "default_version",
    "pins",
    "version_header",
)

SAYS_ELSE = "says something else already; name one of your own, like X-API-Version"


@dataclass(frozen=True, slots=True)
class Choice:
    """What all endpoints of an API have in common when they choose.

    Attributes:
        default: what is served where a request names no version.
        matching: what else names a version than its label.
        pins: what a client gets where its request names none.
        header: the field of responses that says which version was served.
        vary: the fields that name clients, where there are pins.
    """

    default: Version | None = None
    matching: Matching = EXACT
    pins: Mapping[str, Version] = field(default_factory=dict)
    header: str | None = None
    vary: tuple[str, ...] = ()

    def fields(self, version: Version | None) -> FieldLines:
        """Return what responses of a version carry."""
        if self.header is None or version is None:
            return ()
        return ((self.header.encode(), str(version).encode()),)


def read_version(label: str, config: root_section.ApiConfig) -> Version:
    """Return the version that a label spells.

    Raises:
        ValueError: with a sentence for the operator, when it spells none.
    """
    written = Format(config.version_format)
    version = parse(label, written)
    if version is not None:
        return version
    fitting = [other for other in Format if parse(label, other) is not None]
    remedy = f"; for such versions, add version_format: {fitting[0]}" if fitting else ""
    raise ValueError(_WRITTEN[written] + remedy)


def build_choice(
    name: str,
    config: root_section.Config,
    versions: Mapping[str, Version],
    naming: ClientNaming | None,
    mistakes: Mistakes,
) -> Choice:
    """Return how the API of that name chooses; what is wrong goes to `mistakes`."""
    api, at = config.apis[name], ("apis", name)
    if api.versions is None:
        for key in _OF_VERSIONS:
            if key in api.model_fields_set:
                mistakes.add("without versions, there is nothing to choose; remove it", *at, key)
        return Choice()
    if not versions:  # none is well written, which has been said
        return Choice()
    return Choice(
        _default(name, config, versions, mistakes),
        Matching(
            tuple(versions.values()),
            Format(api.version_format),
            nearest_lower=api.match == "nearest_lower",
            ranges=api.ranges,
        ),
        _pins(api, versions, naming, at, mistakes),
        _header(api, config, at, mistakes),
        _named_by(config.clients) if api.pins and config.clients else (),
    )


def _default(
    name: str, config: root_section.Config, versions: Mapping[str, Version], mistakes: Mistakes
) -> Version | None:
    own = config.apis[name].default_version
    if own is not None:
        return mistakes.look_up(own, versions, "version", "apis", name, "default_version")
    if config.default_version is None:
        return None
    if config.default_version not in versions:
        mistakes.add(
            f"the API {name} has no version '{config.default_version}';"
            f" {suggest(config.default_version, versions)}; give it a default_version of its own",
            "default_version",
        )
    return versions.get(config.default_version)


def _header(
    api: root_section.ApiConfig, config: root_section.Config, at: Location, mistakes: Mistakes
) -> str | None:
    name = config.version_header
    place: Location = ("version_header",)
    if api.version_header is not None:
        name, place = api.version_header, (*at, "version_header")
    if name is not None and name.lower().encode() in SPOKEN_FOR:
        mistakes.add(SAYS_ELSE, *place)
    return name


def _pins(
    api: root_section.ApiConfig,
    versions: Mapping[str, Version],
    naming: ClientNaming | None,
    at: Location,
    mistakes: Mistakes,
) -> dict[str, Version]:
    if api.pins and naming is None:
        mistakes.add(
            "nothing names clients, so that none can be pinned; say what does, at the top:"
            " clients: { by: [ { header: X-Client } ] }",
            *at,
            "pins",
        )
        return {}
    pins = {}
    for client, label in api.pins.items():
        version = mistakes.look_up(label, versions, "version", *at, "pins", client)
        if version is not None and naming is not None:
            pins[naming.known_as(client)] = version
    return pins


def _named_by(clients: ClientsConfig) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for source in clients.by:
        for place in (source.api_key, source.jwt, source):
            if place is not None and place.header is not None:
                names[place.header] = None
        if source.address is not None:
            names["*"] = None  # no field says it (RFC 9110, section 12.5.5)
    return tuple(names)
