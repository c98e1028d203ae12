"""Limits: what is written, and the defaults."""

from tests.gateway.rules.rules import RULES, loaded


def test_limits() -> None:
    assert loaded(RULES).limits.convert == 16 * 1024 * 1024
    assert loaded(RULES + "limits: { convert: 5 }\n").limits.convert == 5
