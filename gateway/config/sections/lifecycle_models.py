"""The shape of what gateway.yaml says of a version's end: its lifecycle and its brownouts."""

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Annotated, Literal, TypeVar

from pydantic import Discriminator, Field, Tag

from gateway.config.shape import NumberText, SectionModel
from gateway.config.text.dates import format_date, parse_date
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.clients import ClientNaming

DATE = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([Tt][0-9]{2}:[0-9]{2}(:[0-9]{2})?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?$"
)
URL = r"^https?://[!#-;=?-Z\[\]_a-z~]+$"

Date = Annotated[str, Field(pattern=DATE)]
Minutes = Annotated[float, Field(gt=0, le=10_080), NumberText]
SharePercent = Annotated[float, Field(ge=0, le=100), NumberText]
T = TypeVar("T")


def _one_or_two(value: object) -> str:
    return "two" if isinstance(value, list | tuple) else "one"


Growing = Annotated[
    Annotated[T, Tag("one")] | Annotated[tuple[T, T], Tag("two")], Discriminator(_one_or_two)
]


class GraceConfig(SectionModel):
    """A client for whom the version ends later."""

    client: Annotated[str, Field(min_length=1)]
    """Its name, as `clients` gives it."""
    until: Date
    """When the version ends for it."""


class LifecycleConfig(SectionModel):
    """How the version ends. A date is a day as 2026-12-31, which begins at 00:00 UTC, or a time."""

    deprecated: Date | None = None
    """From when on it should not be used: every answer says so (RFC 9745)."""
    sunset: Date | None = None
    """When it ends: every answer says so before (RFC 8594), and is 410 from then on."""
    link: Annotated[str, Field(pattern=URL)] | None = None
    """The URL of a page for those who use it."""
    successor: str | None = None
    """The later version to use instead."""
    exempt: tuple[GraceConfig, ...] = ()
    """The clients for whom it ends later."""


class SparedConfig(SectionModel):
    """A client that brownouts do not concern."""

    client: Annotated[str, Field(min_length=1)]
    """Its name, as `clients` gives it."""
    until: Date | None = None
    """Until when; without it, for good."""


class WindowConfig(SectionModel):
    """A time in which requests are refused."""

    at: str | None = None
    """When it opens, as cron has it: minute, hour, day, month, weekday; without it, it is open."""
    minutes: Growing[Minutes] | None = None
    """How long it is open each time; a pair grows evenly between `from` and `to`."""
    percent: Growing[SharePercent] = 100.0
    """Of the requests while it is open; a pair grows evenly between `from` and `to`."""
    from_: Annotated[Date | None, Field(alias="from")] = None
    """Not before this date."""
    to: Date | None = None
    """Not from this date on."""


class BrownoutConfig(SectionModel):
    """When the version is refused for a while, so that who still uses it notices in good time."""

    windows: tuple[WindowConfig, ...] = ()
    """When it is refused."""
    percent: SharePercent = 0.0
    """Of the requests that are refused at any time."""
    zone: str = "UTC"
    """The time zone of `at`, such as Europe/Berlin."""
    status: Annotated[Literal[503, 410], NumberText] = 503
    """What is answered: 503, with Retry-After, or 410."""
    exempt: tuple[SparedConfig, ...] = ()
    """The clients that are spared."""


def exemptions(
    configs: Sequence[GraceConfig | SparedConfig],
    naming: ClientNaming | None,
    at: Location,
    mistakes: Mistakes,
    sunset: float = -inf,
) -> dict[str, float]:
    """Return until when each client is exempt, by the name under which its requests come.

    Args:
        configs: what the rules say.
        naming: how clients are named; None where nothing names them, which is a mistake here.
        at: where the rules say it.
        mistakes: takes what is wrong.
        sunset: what an exemption has to outlast.
    """
    if configs and naming is None:
        mistakes.add("nothing names the clients; add clients: { by: [ ... ] } at the top", *at)
    exempt: dict[str, float] = {}
    for index, config in enumerate(configs):
        until = inf
        if config.until is not None:
            found = mistakes.attempt(partial(parse_date, config.until), *at, index, "until")
            until = inf if found is None else found
        if until <= sunset:
            mistakes.add(
                f"is no later than the sunset, {format_date(sunset)};"
                " name a later date, or remove it",
                *(*at, index, "until"),
            )
        client = config.client if naming is None else naming.known_as(config.client)
        if client in exempt:
            mistakes.add("is exempt already; keep one of the two", *at, index, "client")
        exempt[client] = until
    return exempt
