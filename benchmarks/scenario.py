"""The interface of scenarios, and their common requests and rates."""

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
"""The proxies that route by version like the gateway, by name."""
PACED = 1000.0
"""The requests per second of a load far below the maximum."""


class SkippedError(Exception):
    """This machine or this gateway does not support the comparison; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The duration of runs and the size of bodies.

    Attributes:
        seconds: the duration of each run of small requests.
        megabytes: the size of each large body.
    """

    seconds: int
    megabytes: int


Scenario = Callable[[Lab, Effort], Comparison]
