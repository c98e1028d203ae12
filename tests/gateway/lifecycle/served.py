"""Routes of version 1 for tests that add keys to the version's section of gateway.yaml."""

from gateway.routing.snapshot import Route
from gateway.versions.version import Version
from tests.gateway.rules.rules import RULES, edited, loaded

NAMED = "clients: { by: [{ header: X-Client }] }\n"


def first_version(more: str, top: str = NAMED) -> Route:
    text = edited('"1": { service: old }', f'"1": {{ service: old, {more} }}', top + RULES)
    found = loaded(text).router.find("/param")
    assert found is not None
    return found[0].routes[Version(1, "1")]
