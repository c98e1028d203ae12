"""Names that clients get by rules of a test."""

from gateway.access.clients import ClientNaming
from tests.gateway.rules.rules import RULES, loaded
from tests.gateway.world import head


def naming(by: str, more: str = "", **environment: str) -> ClientNaming:
    """Return how clients are named by rules that say it so."""
    found = loaded(f"clients: {{ by: [{by}]{more} }}\n{RULES}", **environment).naming
    assert found is not None
    return found


def bearer(names: ClientNaming, token: str) -> str:
    """Return the name of who sends a token."""
    return names.name(head("/", ("Authorization", f"Bearer {token}")), "192.0.2.7")
