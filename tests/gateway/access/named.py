"""Client names according to a `clients` section."""

from gateway.access.clients import ClientNaming
from tests.gateway.rules.rules import RULES, loaded
from tests.gateway.world import head


def naming(by: str, more: str = "", **environment: str) -> ClientNaming:
    found = loaded(f"clients: {{ by: [{by}]{more} }}\n{RULES}", **environment).naming
    assert found is not None
    return found


def named(names: ClientNaming, *fields: tuple[str, str], target: str = "/", peer: str = "") -> str:
    return names.identify(head(target, *fields), peer).name


def bearer(names: ClientNaming, token: str) -> str:
    return named(names, ("Authorization", f"Bearer {token}"), peer="192.0.2.7")
