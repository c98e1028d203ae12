"""Keys that are fetched from an issuer: bounds, rotation, outages and hostile tokens."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.access import key_sets
from gateway.access.clients import ClientNaming
from gateway.base.client_names import Identity
from tests.gateway.access.named import naming
from tests.gateway.kit import DEADLINE
from tests.gateway.world import head

RSA = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
Serve = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def jwk(private: Any, kid: str | None = "a", **more: object) -> dict[str, object]:
    algorithms = {rsa.RSAPrivateKey: "RS256", ed25519.Ed25519PrivateKey: "EdDSA"}
    name = next((n for kind, n in algorithms.items() if isinstance(private, kind)), "ES256")
    public = jwt.get_algorithm_by_name(name).to_jwk(private.public_key(), as_dict=True)
    public.pop("key_ops", None)
    return {**public, **({} if kid is None else {"kid": kid}), **more}


def token(private: Any, kid: object = "a", algorithm: str = "RS256", **claims: object) -> str:
    """Return a signed token; `kid` may be of any type, unlike with PyJWT."""
    header = json.dumps({"alg": algorithm, "typ": "JWT", "kid": kid}).encode()
    payload = json.dumps({"sub": "bob", **claims}).encode()
    parts = [base64.urlsafe_b64encode(each).rstrip(b"=") for each in (header, payload)]
    signed = jwt.get_algorithm_by_name(algorithm).sign(b".".join(parts), private)
    return b".".join([*parts, base64.urlsafe_b64encode(signed).rstrip(b"=")]).decode()


@dataclass
class Issuer:
    """A server of keys; `serve` replaces its response."""

    port: int = 0
    keys: list[dict[str, object]] = field(default_factory=lambda: [jwk(RSA)])
    fetches: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    serve: Serve | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.fetches.append(request.path)
        if self.serve is not None:
            return await self.serve(request)
        if request.path != "/keys":
            return web.json_response({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
        return web.json_response({"keys": self.keys}, headers=self.headers)


@asynccontextmanager
async def serving(issuer: Issuer) -> AsyncIterator[Issuer]:
    runner = web.ServerRunner(web.Server(issuer.answer), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    issuer.port = runner.addresses[0][1]
    yield issuer
    await runner.cleanup()


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with serving(Issuer()) as issuer:
        yield issuer


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(key_sets, "monotonic", clock)
    return clock


def by_keys(issuer: Issuer, more: str = "", algorithms: str = "RS256") -> ClientNaming:
    return naming(f"{{ jwt: {{ jwks: '{issuer.url}/keys', algorithms: [{algorithms}]{more} }} }}")


async def identify(names: ClientNaming, text: str) -> Identity:
    asked = head("/", ("Authorization", f"Bearer {text}"))
    found = names.identify(asked, "")
    while found.pending is not None:
        await found.pending()
        found = names.identify(asked, "")
    return found


def reason(found: Identity) -> str:
    assert found.rejection is not None
    assert found.name == ""
    return found.rejection.reason


@pytest.mark.parametrize(
    ("private", "algorithm"), [(RSA, "RS256"), (RSA, "PS256"), (EC, "ES256"), (ED, "EdDSA")]
)
async def test_a_token_is_verified_by_the_key_that_it_names(
    issuer: Issuer, private: Any, algorithm: str
) -> None:
    issuer.keys = [jwk(OTHER, "b"), jwk(private), {"kty": "new"}, jwk(RSA, "e", use="enc")]
    names = by_keys(issuer, algorithms="RS256, PS256, ES256, EdDSA")
    found = await identify(names, token(private, algorithm=algorithm, scope="a b"))
    assert found == Identity("bob", "jwt", frozenset({"a", "b"}))
    forged = token(private, algorithm=algorithm).rpartition(".")[0] + "." + "A" * 86
    assert reason(await identify(names, forged)) == "has a signature that does not match"
    assert reason(await identify(names, token(RSA, "e"))) == "is signed by an unknown key"
    assert issuer.fetches == ["/keys"]


async def test_a_token_without_a_key_id_is_verified_by_any_key(issuer: Issuer) -> None:
    issuer.keys = [jwk(OTHER, "b"), jwk(RSA, None)]
    for kid in (None, "unlisted"):
        assert (await identify(by_keys(issuer), token(RSA, kid))).name == ("bob" if kid else "")
    unnamed = jwt.encode({"sub": "bob"}, RSA, "RS256")
    assert (await identify(by_keys(issuer), unnamed)).name == "bob"


async def test_discovery_finds_the_key_set_of_the_issuer(issuer: Issuer) -> None:
    by = f"{{ jwt: {{ discover: true, issuer: '{issuer.url}', algorithms: [RS256] }} }}"
    assert (await identify(naming(by), token(RSA, iss=issuer.url))).name == "bob"
    assert issuer.fetches == ["/.well-known/openid-configuration", "/keys"]
    assert reason(await identify(naming(by), token(RSA, iss="x"))) == "is from another issuer"


@pytest.mark.parametrize(
    ("document", "failure"),
    [
        ({"issuer": "https://evil.test", "jwks_uri": "https://evil.test/"}, "of another issuer"),
        ({"jwks_uri": "https://evil.test/"}, "has no issuer or no jwks_uri"),
        ({"issuer": None, "jwks_uri": "http://10.0.0.1/"}, "is not an https:// URL"),
        ({"issuer": None, "jwks_uri": "file:///etc/passwd"}, "is not an https:// URL"),
        ({"issuer": None, "jwks_uri": 7}, "is not a URL"),
    ],
)
async def test_a_discovery_document_that_cannot_be_used_gives_no_keys(
    issuer: Issuer, document: dict[str, object], failure: str
) -> None:
    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        given = document.get("issuer", "")
        return web.json_response({**document, "issuer": issuer.url if given is None else given})

    issuer.serve = serve
    by = f"{{ jwt: {{ discover: true, issuer: '{issuer.url}', algorithms: [RS256] }} }}"
    names = naming(by)
    found = await identify(names, token(RSA))
    assert found.rejection is not None
    assert found.rejection.retry_after in range(1, 31)
    assert failure in names.key_sets[0].failure or document.get("issuer", True) is not None


async def _endless(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65536)


async def _redirect(request: web.BaseRequest) -> web.StreamResponse:
    raise web.HTTPFound("/keys" if request.path != "/keys" else "/elsewhere")


async def _many(request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"keys": [jwk(RSA, str(each)) for each in range(101)]})


async def _secret(request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}]})


async def _nested(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="[" * 100_000)


@pytest.mark.parametrize(
    ("serve", "failure"),
    [
        (_endless, "has more than 524288 bytes"),
        (_redirect, "responds with 302"),
        (_many, "a key set is a list of at most 100 keys"),
        (_secret, "the key set has no key for RS256"),
        (_nested, "the text is not a JSON Web Key Set"),
    ],
)
async def test_a_hostile_key_set_is_rejected(issuer: Issuer, serve: Serve, failure: str) -> None:
    issuer.serve = serve
    names = by_keys(issuer)
    async with asyncio.timeout(DEADLINE):
        found = await identify(names, token(RSA))
    assert reason(found) == "cannot be verified yet, since the keys of its issuer are not fetched"
    assert failure in names.key_sets[0].failure
    assert issuer.fetches == ["/keys"]


@pytest.mark.parametrize("kid", ["k" * 1024, "../../etc/passwd", "'; drop table", "\N{SNOWMAN}"])
async def test_a_hostile_key_id_is_only_unknown(issuer: Issuer, kid: str) -> None:
    names = by_keys(issuer)
    assert reason(await identify(names, token(RSA, kid))) == "is signed by an unknown key"


@pytest.mark.parametrize("kid", [7, ["a"], {"a": 1}, True])
async def test_a_key_id_that_is_no_text_is_malformed(issuer: Issuer, kid: object) -> None:
    assert reason(await identify(by_keys(issuer), token(RSA, kid))) == "is malformed"
    assert issuer.fetches == []


async def test_a_public_key_is_never_a_shared_secret(issuer: Issuer) -> None:
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    names = by_keys(issuer)
    await identify(names, token(RSA))
    for secret in (pem, pem.strip(), json.dumps(issuer.keys[0]).encode(), b""):
        header, payload, _ = token(RSA).split(".")
        header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"a"}').decode().rstrip("=")
        signed = jwt.get_algorithm_by_name("HS256").sign(f"{header}.{payload}".encode(), secret)
        forged = f"{header}.{payload}.{base64.urlsafe_b64encode(signed).decode().rstrip('=')}"
        assert reason(await identify(names, forged)) == (
            "is signed by an algorithm that is not accepted"
        )


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"alg": "none"}, "is signed by an algorithm that is not accepted"),
        ({"alg": "None"}, "is signed by an algorithm that is not accepted"),
        ({"alg": ["RS256"]}, "is signed by an algorithm that is not accepted"),
        ({"crit": ["exp"]}, "is malformed"),
        ({"crit": ["b64"], "b64": True}, "has a critical header parameter, which is not supported"),
        ({"jku": "https://evil.test/"}, "has a signature that does not match"),
        ({"jwk": jwk(OTHER)}, "has a signature that does not match"),
    ],
)
async def test_the_header_of_a_token_chooses_neither_key_nor_algorithm(
    issuer: Issuer, members: dict[str, object], why: str
) -> None:
    header = json.dumps({"alg": "RS256", "kid": "a", **members}).encode()
    payload = token(OTHER).split(".")[1]
    signed = base64.urlsafe_b64encode(header).decode().rstrip("=") + "." + payload
    signature = jwt.get_algorithm_by_name("RS256").sign(signed.encode(), OTHER)
    text = f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    names = by_keys(issuer)
    assert reason(await identify(names, text)) == why
    assert set(issuer.fetches) <= {"/keys"}


async def test_unknown_key_ids_cause_one_fetch_in_thirty_seconds(
    issuer: Issuer, clock: Clock
) -> None:
    names = by_keys(issuer)
    await asyncio.gather(*(identify(names, token(RSA, f"k{each}")) for each in range(50)))
    assert len(issuer.fetches) == 1
    clock.now += 29.9
    issuer.keys.append(jwk(OTHER, "new"))
    assert reason(await identify(names, token(OTHER, "new"))) == "is signed by an unknown key"
    clock.now += 0.1
    found = await asyncio.gather(*(identify(names, token(OTHER, "new")) for _ in range(50)))
    assert {each.name for each in found} == {"bob"}
    assert len(issuer.fetches) == 2


async def test_known_keys_stay_in_use_while_the_issuer_is_down(
    issuer: Issuer, clock: Clock
) -> None:
    reported: list[str] = []

    async def down(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=500)

    names = by_keys(issuer)
    names.key_sets[0].report = lambda keys, *_: reported.append(keys.failure)
    known = token(RSA)
    assert (await identify(names, known)).name == "bob"
    issuer.serve = down
    for _ in range(10):
        clock.now += 3600
        names = by_keys(issuer)  # a reload
        for text in (known, token(RSA, sub="ann")):
            assert (await identify(names, text)).proof == "jwt"
        await names.key_sets[0].fetch()
    assert len(issuer.fetches) == 11
    assert reported == ["", *[f"{issuer.url}/keys responds with 500"] * 10]
    issuer.serve = None
    issuer.keys = [jwk(OTHER)]
    clock.now += 30
    await names.key_sets[0].fetch()
    assert reason(await identify(names, known)) == "has a signature that does not match"


@pytest.mark.parametrize(
    ("control", "seconds"),
    [("", 600), ("public, max-age=900", 900), ("max-age=1", 300), ("max-age=99999", 3600)],
)
async def test_keys_are_fetched_again_as_cache_control_says(
    issuer: Issuer, clock: Clock, control: str, seconds: int
) -> None:
    issuer.headers = {"Cache-Control": control}
    names = by_keys(issuer)
    await identify(names, token(RSA))
    clock.now += seconds - 1
    await identify(names, token(RSA))
    assert len(issuer.fetches) == 1
    clock.now += 1
    assert (await identify(names, token(RSA))).name == "bob"  # without waiting
    await names.key_sets[0].fetch()
    assert len(issuer.fetches) == 2


async def test_a_long_token_is_refused_without_a_copy(issuer: Issuer) -> None:
    names = by_keys(issuer)
    assert reason(await identify(names, "a" * 1_000_000)) == "has more than 8192 characters"
    assert issuer.fetches == []


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": 1}, "has expired"),
        ({"nbf": 9e9}, "is not valid yet"),
        ({"exp": "soon"}, "has a time (exp, nbf or iat) that is not a number"),
        ({"aud": "other"}, "is for another audience"),
        ({"aud": None}, "has no claim aud"),
        ({"iss": "other"}, "is from another issuer"),
        ({"sub": ["bob"]}, "has no claim 'sub' with a name"),
        ({"sub": ""}, "has no claim 'sub' with a name"),
    ],
)
async def test_a_rejection_names_its_reason(
    issuer: Issuer, claims: dict[str, Any], why: str
) -> None:
    names = by_keys(issuer, ", audience: [me, us], issuer: i")
    given: dict[str, Any] = {"aud": ["us"], "iss": "i", **claims}
    assert reason(await identify(names, token(RSA, **given))) == why
    assert (await identify(names, token(RSA, aud=["us"], iss="i"))).name == "bob"


async def test_leeway_applies_to_both_times(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = by_keys(issuer, ", leeway: 5")
    text = token(RSA, nbf=2000, exp=3000)
    found = {}
    for now in (1994.0, 1995.0, 3004.0, 3005.0):
        monkeypatch.setattr(time, "time", lambda at=now: at)
        found[now] = (await identify(names, text)).name
    assert found == {1994.0: "", 1995.0: "bob", 3004.0: "bob", 3005.0: ""}


@pytest.mark.parametrize(
    ("more", "claims", "scopes"),
    [
        ("", {"scope": "a b"}, {"a", "b"}),
        ("", {"scp": ["a", 7]}, {"a"}),
        ("", {"scope": 7}, set()),
        ("", {}, set()),
        (", scopes: roles", {"roles": ["a"], "scope": "b"}, {"a"}),
    ],
)
async def test_scopes_are_read_from_their_claim(
    issuer: Issuer, more: str, claims: dict[str, Any], scopes: set[str]
) -> None:
    assert (await identify(by_keys(issuer, more), token(RSA, **claims))).scopes == scopes


async def test_a_token_of_a_second_issuer_is_verified_by_its_source(issuer: Issuer) -> None:
    pem = OTHER.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    names = naming(
        f"{{ jwt: {{ jwks: '{issuer.url}/keys', algorithms: [RS256] }} }},"
        " { jwt: { key: '${KEY}', algorithms: [RS256] } }",
        KEY=pem,
    )
    for private in (RSA, OTHER):
        assert (await identify(names, token(private))) == Identity("bob", "jwt")
    assert (await identify(names, token(EC, algorithm="ES256"))).rejection is not None
