"""CountedRoute: what is counted by a line of the log of a front proxy, as the name of its route."""

from typing import NamedTuple
from urllib.parse import quote, unquote

# The names of routes to the gateway and of fixed answers begin otherwise.
_STRAIGHT = "straight"


class CountedRoute(NamedTuple):
    """What goes straight to its service.

    Attributes:
        api: The name of the API.
        version: The label of the version; empty if the API has no versions.
        endpoint: The path template of the endpoint.
    """

    api: str
    version: str
    endpoint: str

    @property
    def name(self) -> str:
        """The name of the route; a version has no space in it, and a path may."""
        return f"{_STRAIGHT} {quote(self.api)} {self.version} {self.endpoint}"


def counted_route(name: str) -> CountedRoute | None:
    """Return what goes by a route of this name; None if it does not go straight to its service."""
    kind, *counted = name.split(" ", 3)
    if kind != _STRAIGHT or len(counted) < 3:
        return None
    api, version, endpoint = counted
    return CountedRoute(unquote(api), version, endpoint)
