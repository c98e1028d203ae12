"""Scenarios: what is asked in them, of whom, for how long, and what one is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import systems
from benchmarks.comparison import Comparison
from benchmarks.lab import Lab
from benchmarks.request import Request

BOB_1, BOB_2 = '"Bob Charlie"', '"firstName":"Bob"'
BY_PATH = Request("/v2/person")
MECHANISMS = {
    "path": BY_PATH,
    "query": Request("/person/param?version=2"),
    "header": Request("/person/header", (("X-API-VERSION", "2"),)),
    "Accept": Request("/person/accept", (("Accept", "application/vnd.comp.app-v2+json"),)),
}
ROUTING_PEERS: Mapping[str, Callable[[int, int], systems.System]] = {
    "Envoy": systems.envoy,
    "Caddy": systems.caddy,
    "Traefik": systems.traefik,
}
"""Those that are given the same routing by version as the gateway, by their names."""
PACED = 1000.0
"""Requests a second, of a load that leaves room."""


class SkippedError(Exception):
    """This machine, or this gateway, cannot show it; the text says why."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long and how much.

    Attributes:
        seconds: of each run of small requests.
        megabytes: of each large body.
    """

    seconds: int
    megabytes: int


Scenario = Callable[[Lab, Effort], Comparison]
