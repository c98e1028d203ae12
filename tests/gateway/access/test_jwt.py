"""JSON Web Tokens in gateway.yaml: the tokens that give a client its name."""

import json
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from math import inf, nan
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from gateway.rules.load import load_file
from tests.gateway.access.named import bearer, named, naming
from tests.gateway.kit import ROOT
from tests.gateway.rules.rules import RULES, report
from tests.gateway.world import LAW

SECRET = "s" * 32
NOW = int(time.time())
NO_TIMES: list[object] = [inf, -inf, nan, True, False, "9", None, [NOW], {}]
# Times from the year 10000 on, times in milliseconds, and a number too large for a float.
LATE, EARLY = [253_402_300_800, NOW * 1000, 1e300, 10**400], [-1, -0.5, -(10**12), -(10**400), 0]
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
RSA, EC = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
VERIFIED = naming(
    "{ jwt: { claim: sub, key: '${KEY}', algorithms: [HS256], audience: a, issuer: i } }",
    KEY=SECRET,
)
UNVERIFIED = naming("{ jwt: { claim: sub } }")
CLAIMS = {"sub": "bob", "aud": "a", "iss": "i"}


def public(private: PrivateKey) -> bytes:
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def unsigned(payload: bytes) -> str:
    """Return a token with a payload, without padding (RFC 7515, section 2)."""
    return f"h.{urlsafe_b64encode(payload).decode().rstrip('=')}.s"


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
    ],
)
def test_a_verified_token_must_be_in_force(more: dict[str, object], name: str) -> None:
    token = jwt.encode({**CLAIMS, **more}, SECRET, "HS256", sort_headers=True)
    assert [bearer(VERIFIED, token), bearer(VERIFIED, token)] == [name, name]


@pytest.mark.parametrize(
    "token",
    [
        jwt.encode(CLAIMS, "o" * 32, "HS256"),
        jwt.encode(CLAIMS, "s" * 64, "HS512"),
        jwt.encode(CLAIMS, "", "none"),
        jwt.encode(CLAIMS, SECRET, "HS256") + "x",
        jwt.encode({**CLAIMS, "much": "m" * 9000}, SECRET, "HS256"),
        *("", "x", "a.b.c", "\xe9.\xe9.\xe9"),
    ],
    ids=lambda token: ascii(token[:9]),
)
def test_a_token_that_cannot_be_verified_gives_no_name(token: str) -> None:
    assert bearer(VERIFIED, token) == ""


def test_a_cached_token_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    token = jwt.encode({**CLAIMS, "exp": NOW + 1000}, SECRET, "HS256")
    assert bearer(VERIFIED, token) == "bob"
    monkeypatch.setattr(time, "time", lambda: NOW + 1000)
    assert bearer(VERIFIED, token) == ""


@pytest.mark.parametrize(
    ("sub", "name"),
    [("bob", "bob"), (7, "7"), (True, ""), (None, ""), (["bob"], ""), (1.5, ""), ("", "")],
)
def test_a_claim_is_a_text_or_an_integer(sub: object, name: str) -> None:
    assert bearer(UNVERIFIED, unsigned(json.dumps({"sub": sub}).encode())) == name


@pytest.mark.parametrize(
    ("scheme", "name"),
    [("Bearer ", "bob"), ("bearer  ", "bob"), ("", "bob"), ("Basic ", ""), ("Bearer x ", "")],
)
def test_the_scheme_is_bearer_or_absent(scheme: str, name: str) -> None:
    token = jwt.encode(CLAIMS, SECRET, "HS256")
    assert named(VERIFIED, ("Authorization", scheme + token)) == name


def test_any_audience_is_accepted_without_a_configured_one() -> None:
    by = "{ jwt: { claim: sub, key: '${KEY}', algorithms: [HS256] } }"
    assert bearer(naming(by, KEY=SECRET), jwt.encode(CLAIMS, SECRET, "HS256")) == "bob"


def test_the_path_of_a_key_file_starts_from_the_folder_of_gateway_yaml(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(public(EC))
    by = "clients: { by: [{ jwt: { claim: sub, key_file: key.pem, algorithms: [ES256] } }] }\n"
    (tmp_path / "gateway.yaml").write_text(by + RULES)
    names = load_file(tmp_path / "gateway.yaml", {}).naming
    assert names is not None
    assert bearer(names, jwt.encode({"sub": "bob"}, EC, "ES256")) == "bob"
    # The public key must not be accepted as a shared secret.
    assert bearer(names, jwt.encode({"sub": "bob"}, SECRET, "HS256")) == ""


@pytest.mark.parametrize(
    ("private", "algorithms", "useless", "remedy"),
    [
        (RSA, "ES256", "ES256", "RS256, RS384, RS512, PS256, PS384, PS512"),
        (RSA, "RS256, ES256", "ES256", "RS256, RS384, RS512, PS256, PS384, PS512"),
        (RSA, "HS256", "HS256", "RS256, RS384, RS512, PS256, PS384, PS512"),
        (EC, "RS256", "RS256", "ES256"),
        (EC, "ES384", "ES384", "ES256"),
    ],
)
def test_a_mistake_names_the_algorithms_that_fit_the_key(
    private: PrivateKey, algorithms: str, useless: str, remedy: str
) -> None:
    by = f"{{ jwt: {{ claim: sub, key: '${{KEY}}', algorithms: [{algorithms}] }} }}"
    (line,) = report(f"clients: {{ by: [{by}] }}\n" + RULES, KEY=public(private).decode())
    assert line.endswith(
        f"clients.by[0].jwt: the key cannot be used for {useless}; use {remedy},"
        f" or a key for {useless}"
    )


def test_a_weak_public_key_is_refused() -> None:
    private = rsa.generate_private_key(65537, 1024)  # noqa: S505
    rules = "clients: { by: [{ jwt: { claim: sub, key: '${KEY}', algorithms: [RS256] } }] }\n"
    (line,) = report(rules + RULES, KEY=public(private).decode())
    assert "the key is too short for RS256" in line


def test_a_key_file_that_is_not_a_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"\xff")
    rules = f"clients: {{ by: [{{ jwt: {{ claim: sub, key_file: {file} }} }}] }}\n"
    (line,) = report(rules + RULES)
    assert line.endswith("cannot be read: not a text")


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a.b", "a.b.c.d", "..", "h.\u0661.s", "h.e.s"),
        *(map(unsigned, (b"", b"no", b"[1]", b'"a"', b"\xff", b"[" * 5000))),
        unsigned(b'{"sub": "bob"}') + "\xe9",
        unsigned(b'{"sub": "bob", "a": "%b"}' % (b"a" * 8192)),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_a_text_that_is_not_a_token_gives_no_name(text: str) -> None:
    assert bearer(UNVERIFIED, text) == ""


@LAW
@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=9))
def test_an_unverified_token_gives_the_name_that_it_claims(sub: str) -> None:
    assert bearer(UNVERIFIED, unsigned(json.dumps({"sub": sub}).encode())) == sub
    assert bearer(UNVERIFIED, f"{sub}.{sub}.{sub}") == ""


def test_pyjwt_is_imported_only_where_tokens_are_verified() -> None:
    code = (
        "import sys; from tests.gateway.rules.rules import RULES, loaded;"
        "loaded('clients: { by: [{ jwt: { claim: sub } }] }\\n' + RULES);"
        "print('jwt' in sys.modules, 'cryptography' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert ran.stdout.split() == [b"False", b"False"]
