"""`exempt` in gateway.yaml: clients that the sunset or the brownouts of a version do not affect."""

from collections.abc import Sequence
from functools import partial
from math import inf

from gateway.access.clients import ClientNaming
from gateway.base.dates import format_date, parse_date
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import Date, NonEmptyText, SectionModel


class SunsetExemption(SectionModel):
    """A client for which the version ends later than for others."""

    client: NonEmptyText
    """The name of the exempt client, as `clients` gives it."""
    until: Date
    """The date on which the version ends for this client."""


class BrownoutExemption(SectionModel):
    """A client whose requests are not refused in brownouts."""

    client: NonEmptyText
    """The name of the exempt client, as `clients` gives it."""
    until: Date | None = None
    """The date on which the exemption ends. Without it, the exemption does not end."""


def compile_exemptions(
    exemptions: Sequence[SunsetExemption | BrownoutExemption],
    naming: ClientNaming | None,
    at: Location,
    mistakes: Mistakes,
    sunset: float = -inf,
) -> dict[str, float]:
    """Return the end of each exemption, in seconds since 1970, by the name of the client.

    It must be after the sunset. Without names of clients, exemptions are a mistake.
    """
    if exemptions and naming is None:
        mistakes.add("nothing names the clients; add clients: { by: [ ... ] } at the top", *at)
    ends: dict[str, float] = {}
    for index, exemption in enumerate(exemptions):
        until = inf
        if exemption.until is not None:
            found = mistakes.attempt(partial(parse_date, exemption.until), *at, index, "until")
            until = inf if found is None else found
        if until <= sunset:
            mistakes.add(
                f"is not after the sunset, {format_date(sunset)}; use a later date, or remove it",
                *(*at, index, "until"),
            )
        client = exemption.client if naming is None else naming.known_as(exemption.client)
        if client in ends:
            mistakes.add("is exempt already; keep one of the two", *at, index, "client")
        ends[client] = until
    return ends
