"""`exempt` in gateway.yaml: the clients that an end or a brownout of a version does not affect."""

from collections.abc import Sequence
from functools import partial
from math import inf

from gateway.access.clients import ClientNaming
from gateway.base.dates import format_date, parse_date
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import Date, NonEmptyText, SectionModel


class SunsetExemptionConfig(SectionModel):
    """A client for which the version ends later than for others."""

    client: NonEmptyText
    """The name of the exempt client, as `clients` gives it."""
    until: Date
    """The date on which the version ends for this client."""


class BrownoutExemptionConfig(SectionModel):
    """A client whose requests are not refused in brownouts."""

    client: NonEmptyText
    """The name of the exempt client, as `clients` gives it."""
    until: Date | None = None
    """The date on which the exemption ends. Without it, the exemption does not end."""


def build_exemptions(
    configs: Sequence[SunsetExemptionConfig | BrownoutExemptionConfig],
    naming: ClientNaming | None,
    at: Location,
    mistakes: Mistakes,
    sunset: float = -inf,
) -> dict[str, float]:
    """Return when each exemption ends, by the name under which the client's requests come.

    Args:
        configs: the exemptions as configured.
        naming: how clients get their names; None where they have none, which is a mistake here.
        at: the location of the exemptions.
        mistakes: collects the mistakes.
        sunset: the date that every exemption has to outlast.
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
