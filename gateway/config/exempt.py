"""Exemptions: clients for whom an end comes later, or does not count."""

from collections.abc import Sequence
from functools import partial
from math import inf

from gateway.config.dates import moment, shown
from gateway.config.report import Location, Mistakes
from gateway.config.retirement import GraceConfig, SparedConfig
from gateway.core.client import Naming


def exemptions(
    configs: Sequence[GraceConfig | SparedConfig],
    naming: Naming | None,
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
            found = mistakes.attempt(partial(moment, config.until), *at, index, "until")
            until = inf if found is None else found
        if until <= sunset:
            mistakes.add(
                f"is no later than the sunset, {shown(sunset)}; name a later date, or remove it",
                *(*at, index, "until"),
            )
        client = config.client if naming is None else naming.known_as(config.client)
        if client in exempt:
            mistakes.add("is exempt already; keep one of the two", *at, index, "client")
        exempt[client] = until
    return exempt
