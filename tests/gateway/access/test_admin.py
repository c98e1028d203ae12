"""Access to the admin port: tokens, single sign-on and certificates in gateway.yaml."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from gateway.access.admin import OPEN_ACCESS, AdminAccess, Right, TrustedSignOn
from gateway.base.mistakes import ConfigError
from gateway.rules.load import load
from tests.gateway.admin.access.certificates import write_certificate
from tests.gateway.rules.rules import RULES, loaded, report

ANN, BEN = "0123456789abcdef", "0123456789abcdef-of-ben"
PROXIES = (ip_network("10.0.0.0/8"),)
SIGN_ON = "{ sign_on: { proxies: [10.0.0.0/8] } }"


def admin(section: str, folder: Path = Path()) -> AdminAccess:
    text = f"admin: {section}\n{RULES}"
    return load(text.encode(), "gateway.yaml", {"ANN": ANN}, folder).admin


def test_the_right_to_operate_includes_reading() -> None:
    includes = {(one, other): one.includes(other) for one in Right for other in Right}
    assert [pair for pair, included in includes.items() if not included] == [
        (Right.READ, Right.OPERATE)
    ]


def test_access_is_open_without_credentials(tmp_path: Path) -> None:
    assert loaded(RULES).admin is OPEN_ACCESS
    write_certificate(tmp_path)
    assert admin("{ tls: { certificate: tls.crt, key: tls.key } }", tmp_path).open
    assert not admin('{ tokens: { ann: { right: operate, token: "${ANN}" } } }').open
    assert not admin(SIGN_ON).open


def test_tokens_are_read_from_the_environment_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{BEN}\n")
    found = admin(
        """
  tokens:
    ann: { right: operate, token: "${ANN}" }
    ben: { right: read, token_file: token }
""",
        tmp_path,
    )
    holders = [found.holder(text) for text in (ANN, BEN, ANN[1:], "", "\udcff")]
    assert [holder and (holder.name, holder.right) for holder in holders] == [
        ("ann", Right.OPERATE),
        ("ben", Right.READ),
        *(None, None, None),
    ]
    assert ANN not in repr(found)


@pytest.mark.parametrize("content", [b"short\n", b"\xff" * 20, None])
def test_a_file_without_a_token_is_refused(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigError, match=r"tokens\.a: the token_file 'token' cannot be "):
        admin("{ tokens: { a: { right: read, token_file: token } } }", tmp_path)


def test_mistakes_do_not_contain_the_token() -> None:
    for token in ("secret", "secret-that-is-shared"):
        one = '{ right: read, token: "${T}" }'
        found = report(f"admin: {{ tokens: {{ a: {one}, b: {one} }} }}\n{RULES}", T=token)
        assert found
        assert not any("secret" in line for line in found)


def test_sign_on_is_compiled_with_its_networks_and_groups() -> None:
    assert admin(SIGN_ON).sign_on == TrustedSignOn(
        "X-Forwarded-User", "X-Forwarded-Groups", PROXIES, frozenset(), None
    )
    assert admin(
        "{ sign_on: { proxies: [10.0.0.0/8], user: U, groups: G, operators: [a], readers: [b] } }"
    ).sign_on == TrustedSignOn("U", "G", PROXIES, frozenset({"a"}), frozenset({"b"}))


@pytest.mark.parametrize(
    ("groups", "without_readers", "with_readers"),
    [
        ("platform", Right.OPERATE, Right.OPERATE),
        ("guests, platform", Right.OPERATE, Right.OPERATE),
        ("support", Right.READ, Right.READ),
        ("guests", Right.READ, None),
        ("platforms,Support", Right.READ, None),
        ("", Right.READ, None),
    ],
)
def test_groups_determine_the_right_of_a_user(
    groups: str, without_readers: Right, with_readers: Right | None
) -> None:
    operators, readers = frozenset({"platform"}), frozenset({"support"})
    assert TrustedSignOn("U", "G", PROXIES, operators, None).right(groups) is without_readers
    assert TrustedSignOn("U", "G", PROXIES, operators, readers).right(groups) is with_readers
