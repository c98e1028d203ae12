"""`limits`: configured values and defaults."""

from tests.gateway.rules.rules import RULES, loaded


def test_a_configured_limit_replaces_the_default() -> None:
    assert loaded(RULES).limits.convert == 16 * 1024 * 1024
    assert loaded(RULES + "limits: { convert: 5 }\n").limits.convert == 5
