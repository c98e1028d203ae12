"""JSON Web Tokens in gateway.yaml: which of them are believed."""

import subprocess
import sys
import time
from math import inf, nan
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.rules.load import load_file
from tests.gateway.access.named import bearer, naming
from tests.gateway.kit import ROOT
from tests.gateway.rules.rules import RULES, report

SECRET = "s" * 32
NOW = int(time.time())
NO_TIMES: list[object] = [inf, -inf, nan, True, False, "9", None, [NOW], {}]
# Of the year 10000 and later, in milliseconds, and more than a float holds.
LATE, EARLY = [253_402_300_800, NOW * 1000, 1e300, 10**400], [-1, -0.5, -(10**12), -(10**400), 0]
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
RSA, EC = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())


class TestVerified:
    """Only a token that verifies names somebody."""

    by = "{ jwt: { claim: sub, key: '${KEY}', algorithms: [HS256], audience: a, issuer: i } }"
    claims = {"sub": "bob", "aud": "a", "iss": "i"}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("more", "name"),
        [
            ({}, "bob"),
            ({"exp": NOW + 1000, "nbf": NOW - 1000, "iat": NOW + 1000}, "bob"),
            ({"exp": NOW - 1}, ""),
            ({"nbf": NOW + 1000}, ""),
            ({"exp": NOW + 1000.5}, "bob"),
            *(({name: value}, "") for name in ("exp", "nbf", "iat") for value in NO_TIMES),
            *(({"exp": late}, "bob") for late in LATE),
            *(({"nbf": late}, "") for late in LATE),
            *(({"iat": late}, "bob") for late in LATE),
            *(({"exp": early}, "") for early in EARLY),
            *(({"nbf": early, "iat": early}, "bob") for early in EARLY),
            ({"exp": "never"}, ""),
            ({"aud": "b"}, ""),
            ({"iss": "j"}, ""),
            ({"sub": 7}, "7"),
        ],
    )
    def test_its_claims_count(self, more: dict[str, object], name: str) -> None:
        token = jwt.encode({**self.claims, **more}, SECRET, "HS256", sort_headers=True)
        names = naming(self.by, KEY=SECRET)
        assert [bearer(names, token), bearer(names, token)] == [name, name]

    @pytest.mark.parametrize(
        "token",
        [
            jwt.encode(claims, "o" * 32, "HS256"),
            jwt.encode(claims, "s" * 64, "HS512"),
            jwt.encode(claims, "", "none"),
            jwt.encode(claims, SECRET, "HS256") + "x",
            jwt.encode({**claims, "much": "m" * 9000}, SECRET, "HS256"),
            *("", "x", "a.b.c", "\xe9.\xe9.\xe9"),
        ],
        ids=lambda token: ascii(token[:9]),
    )
    def test_what_does_not_verify_names_nobody(self, token: str) -> None:
        assert bearer(naming(self.by, KEY=SECRET), token) == ""

    def test_it_is_believed_no_longer_than_it_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        token = jwt.encode({**self.claims, "exp": NOW + 1000}, SECRET, "HS256")
        names = naming(self.by, KEY=SECRET)
        assert bearer(names, token) == "bob"
        monkeypatch.setattr(time, "time", lambda: NOW + 1000)
        assert bearer(names, token) == ""

    def test_an_audience_counts_only_where_the_rules_name_one(self) -> None:
        token = jwt.encode(self.claims, SECRET, "HS256")
        by = "{ jwt: { claim: sub, key: '${KEY}', algorithms: [HS256] } }"
        assert bearer(naming(by, KEY=SECRET), token) == "bob"

    def test_by_a_public_key_from_a_file(self, tmp_path: Path) -> None:
        private = ec.generate_private_key(ec.SECP256R1())
        file = tmp_path / "key.pem"
        file.write_bytes(public(private))
        names = naming(f"{{ jwt: {{ claim: sub, key_file: {file}, algorithms: [ES256] }} }}")
        assert bearer(names, jwt.encode({"sub": "bob"}, private, "ES256")) == "bob"
        # The public key is no secret: it must not pass for one.
        assert bearer(names, jwt.encode({"sub": "bob"}, SECRET, "HS256")) == ""

    def test_the_path_of_the_file_starts_from_the_rules(self, tmp_path: Path) -> None:
        private = ec.generate_private_key(ec.SECP256R1())
        (tmp_path / "key.pem").write_bytes(public(private))
        by = "clients: { by: [{ jwt: { claim: sub, key_file: key.pem, algorithms: [ES256] } }] }\n"
        (tmp_path / "gateway.yaml").write_text(by + RULES)
        names = load_file(tmp_path / "gateway.yaml", {}).naming
        assert names is not None
        assert bearer(names, jwt.encode({"sub": "bob"}, private, "ES256")) == "bob"

    def test_a_weak_public_key_is_refused(self) -> None:
        private = rsa.generate_private_key(65537, 1024)  # noqa: S505
        rules = "clients: { by: [{ jwt: { claim: sub, key: '${KEY}', algorithms: [RS256] } }] }\n"
        (line,) = report(rules + RULES, KEY=public(private).decode())
        assert "the key is too short for RS256" in line

    @pytest.mark.parametrize(
        ("private", "algorithms", "useless", "uses"),
        [
            (RSA, "ES256", "ES256", "RS256, RS384, RS512, PS256, PS384, PS512"),
            (RSA, "RS256, ES256", "ES256", "RS256, RS384, RS512, PS256, PS384, PS512"),
            (RSA, "HS256", "HS256", "RS256, RS384, RS512, PS256, PS384, PS512"),
            (EC, "RS256", "RS256", "ES256"),
            (EC, "ES384", "ES384", "ES256"),
        ],
    )
    def test_a_key_of_another_kind_is_named(
        self, private: PrivateKey, algorithms: str, useless: str, uses: str
    ) -> None:
        by = f"{{ jwt: {{ claim: sub, key: '${{KEY}}', algorithms: [{algorithms}] }} }}"
        (line,) = report(f"clients: {{ by: [{by}] }}\n" + RULES, KEY=public(private).decode())
        assert line.endswith(
            f"clients.by[0].jwt: the key is of no use for {useless}; it is one for {uses}:"
            f" name these, or give the key for {useless}"
        )

    def test_a_file_that_is_no_text_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "key"
        file.write_bytes(b"\xff")
        rules = f"clients: {{ by: [{{ jwt: {{ claim: sub, key_file: {file} }} }}] }}\n"
        (line,) = report(rules + RULES)
        assert line.endswith("cannot be read: not a text")


def public(private: PrivateKey) -> bytes:
    """Return the public key as PEM."""
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_what_verifies_is_loaded_only_where_it_is_asked_for() -> None:
    code = (
        "import sys; from tests.gateway.rules.rules import RULES, loaded;"
        "loaded('clients: { by: [{ jwt: { claim: sub } }] }\\n' + RULES);"
        "print('jwt' in sys.modules, 'cryptography' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert said.stdout.split() == [b"False", b"False"]
