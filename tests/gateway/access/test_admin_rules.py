"""Who may ask the admin port: tokens are known by their digests, users by their groups."""

from ipaddress import ip_network

import pytest

from gateway.access.admin_rules import (
    EVERYBODY,
    AdminRules,
    AdminToken,
    Right,
    SignOn,
    token_digest,
)

ANNA = AdminToken("anna", token_digest("a" * 16), Right.OPERATE)
MONITOR = AdminToken("monitor", token_digest("m" * 16), Right.READ)
PROXIES = (ip_network("10.0.0.0/8"),)


def test_operating_has_reading_in_it() -> None:
    assert Right.OPERATE.includes(Right.READ)
    assert Right.OPERATE.includes(Right.OPERATE)
    assert Right.READ.includes(Right.READ)
    assert not Right.READ.includes(Right.OPERATE)


@pytest.mark.parametrize(
    ("text", "found"),
    [("a" * 16, ANNA), ("m" * 16, MONITOR), ("a" * 15, None), ("", None), ("\udcff", None)],
)
def test_the_holder_of_a_token(text: str, found: AdminToken | None) -> None:
    assert AdminRules((ANNA, MONITOR)).holder(text) is found
    assert EVERYBODY.holder(text) is None


def test_no_token_is_kept() -> None:
    assert "aaaa" not in repr(ANNA)


def test_open() -> None:
    sign_on = SignOn("U", "G", PROXIES, frozenset(), None)
    assert EVERYBODY.open
    assert not AdminRules((ANNA,)).open
    assert not AdminRules(sign_on=sign_on).open


@pytest.mark.parametrize(
    ("groups", "anyone", "members"),
    [
        ("platform", Right.OPERATE, Right.OPERATE),
        ("guests, platform", Right.OPERATE, Right.OPERATE),
        ("support", Right.READ, Right.READ),
        ("guests", Right.READ, None),
        ("platforms,Support", Right.READ, None),
        ("", Right.READ, None),
    ],
)
def test_groups(groups: str, anyone: Right, members: Right | None) -> None:
    operators, readers = frozenset({"platform"}), frozenset({"support"})
    assert SignOn("U", "G", PROXIES, operators, None).right(groups) is anyone
    assert SignOn("U", "G", PROXIES, operators, readers).right(groups) is members
