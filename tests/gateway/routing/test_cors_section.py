"""The origins that may read the gateway's own answers; the mistakes are in mistakes.txt."""

from gateway.routing.cors import CorsRules
from tests.gateway.rules.rules import RULES, loaded

ORIGINS = '"http://localhost:3000", "https://app.test", "https://[::1]:8443", "app://index"'


def test_origins() -> None:
    assert loaded(RULES).cors is None
    found = loaded(f"{RULES}cors: {{ origins: [{ORIGINS}], credentials: true }}\n").cors
    origins = frozenset(origin.strip(' "') for origin in ORIGINS.split(","))
    assert found == CorsRules(origins, credentials=True)


def test_all_origins() -> None:
    assert loaded(f'{RULES}cors: {{ origins: ["*"] }}\n').cors == CorsRules(frozenset({"*"}))
