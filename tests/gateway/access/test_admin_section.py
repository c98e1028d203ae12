"""Tokens and single sign-on: from the rules, from the environment, and from files."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from gateway.access.admin_rules import EVERYBODY, AdminRules, Right, SignOn
from gateway.base.mistakes import ConfigError
from gateway.rules.load import load
from tests.gateway.rules.rules import RULES, loaded, report

LONG = "0123456789abcdef"


def admin(section: str, folder: Path) -> AdminRules:
    """Return who may ask by a section, with files of a folder."""
    return load(f"admin: {section}\n{RULES}".encode(), "gateway.yaml", {}, folder).admin


def test_nobody_has_to_prove_who_they_are_by_default() -> None:
    assert loaded(RULES).admin is EVERYBODY


def test_tokens(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{LONG}-of-ben\n")
    section = """
  tokens:
    ann: { right: operate, token: "${ANN}" }
    ben: { right: read, token_file: token }
"""
    text = f"admin: {section}\n{RULES}".encode()
    found = load(text, "gateway.yaml", {"ANN": LONG}, tmp_path).admin
    ann, ben = found.holder(LONG), found.holder(f"{LONG}-of-ben")
    assert ann is not None
    assert ben is not None
    assert [(each.name, each.right) for each in (ann, ben)] == [
        ("ann", Right.OPERATE),
        ("ben", Right.READ),
    ]


@pytest.mark.parametrize("content", [b"short\n", b"\xff" * 20, None])
def test_a_file_without_a_token(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigError, match=r"tokens\.a: the token_file 'token' cannot be used: "):
        admin("{ tokens: { a: { right: read, token_file: token } } }", tmp_path)


def test_no_report_has_the_token() -> None:
    for token in ("secret", "secret-that-is-shared"):
        one = '{ right: read, token: "${T}" }'
        found = report(f"admin: {{ tokens: {{ a: {one}, b: {one} }} }}\n{RULES}", T=token)
        assert found
        assert not any("secret" in line for line in found)


def test_sign_on(tmp_path: Path) -> None:
    most = (
        "{ sign_on: { proxies: [10.0.0.0/8], user: U, groups: G, operators: [a], readers: [b] } }"
    )
    network = ip_network("10.0.0.0/8")
    assert admin(most, tmp_path).sign_on == SignOn(
        "U", "G", (network,), frozenset({"a"}), frozenset({"b"})
    )
    least = admin("{ sign_on: { proxies: [10.0.0.0/8] } }", tmp_path).sign_on
    assert least == SignOn("X-Forwarded-User", "X-Forwarded-Groups", (network,), frozenset(), None)
