"""Exemptions: when they end, for which clients, and the mistakes in them."""

from math import inf

from gateway.access.clients import ClientNaming, HeaderName
from gateway.base.dates import parse_date
from gateway.base.mistakes import Mistakes
from gateway.lifecycle.exemptions import (
    BrownoutExemptionConfig,
    SunsetExemptionConfig,
    build_exemptions,
)

NAMING = ClientNaming((HeaderName("X-Client"),))


def test_when_they_end() -> None:
    mistakes = Mistakes()
    exempt = build_exemptions(
        (
            BrownoutExemptionConfig(client="a"),
            SunsetExemptionConfig(client="b", until="2036-01-01"),
        ),
        NAMING,
        (),
        mistakes,
    )
    assert exempt == {"a": inf, "b": parse_date("2036-01-01")}
    assert mistakes.found == []


def test_hashed_names_are_hashed_here_as_well() -> None:
    hashed = ClientNaming(NAMING.sources, b"key")
    config = (BrownoutExemptionConfig(client="a"),)
    assert build_exemptions(config, hashed, (), Mistakes()) == {hashed.known_as("a"): inf}


def test_mistakes() -> None:
    mistakes = Mistakes()
    early = SunsetExemptionConfig(client="a", until="2036-01-01")
    build_exemptions((early, early), None, ("exempt",), mistakes, parse_date("2036-01-01"))
    assert [mistake.location for mistake in mistakes.found] == [
        ("exempt",),
        ("exempt", 0, "until"),
        ("exempt", 1, "until"),
        ("exempt", 1, "client"),
    ]
