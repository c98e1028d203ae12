"""Routes of version 1 by rules of a test."""

from gateway.routing.snapshot import Route
from gateway.versions.version import Version
from tests.gateway.rules.rules import RULES, edited, loaded

NAMED = "clients: { by: [{ header: X-Client }] }\n"


def first_version(more: str) -> Route:
    """Return the route of version 1, with more in its section of the rules."""
    text = edited('"1": { service: old }', f'"1": {{ service: old, {more} }}', NAMED + RULES)
    found = loaded(text).router.find("/param")
    assert found is not None
    return found[0].routes[Version(1)]
