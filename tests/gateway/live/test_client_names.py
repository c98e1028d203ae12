"""Client names over sockets: they are in the log, and never contain a secret."""

import asyncio
import time
from dataclasses import replace
from math import inf

import jwt
import pytest

from gateway.base.client_names import UNVERIFIED, digest
from tests.gateway.kit import Program, StartGateway, StartUpstream
from tests.gateway.talk import OK, get, logged, soon

RULES = """\
clients:
  by:
    - api_key: {{ header: X-Api-Key, keys: {{ acme: "${{ACME_KEY}}" }} }}
    - api_key: {{ query: key }}
    - jwt: {{ claim: sub, key: "${{JWT_KEY}}", algorithms: [HS256] }}
    - header: X-Client
    - address: {{ ipv4: 24 }}
  {hash}
trusted_proxies: {trusted}
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis: {{ plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }} }}
"""
SECRETS = {"ACME_KEY": "key-of-acme", "JWT_KEY": "s" * 32}


def token(key: str, **claims: object) -> str:
    return jwt.encode({"sub": "bob", **claims}, key, "HS256")


async def name(gateway: Program, *fields: str, line: str = "GET /plain") -> object:
    request_id = f"id-{time.monotonic_ns()}"
    assert (await get(gateway, line, f"X-Request-Id: {request_id}", *fields)).status == 200
    return (await logged(gateway, request_id)).get("client")


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_clients_are_named_in_the_log(
    gateway: StartGateway, upstream: StartUpstream, workers: str
) -> None:
    service = await upstream(OK)
    rules = RULES.format(port=service.port, hash="", trusted="[]")
    program = gateway(rules, GATEWAY_WORKERS=workers, **SECRETS)
    stale = token(SECRETS["JWT_KEY"], exp=int(time.time()) - 1)
    forged = token("o" * 32)
    endless = token(SECRETS["JWT_KEY"], exp=253_402_300_800_000, nbf=-1, iat=0.5)
    infinite = token(SECRETS["JWT_KEY"], exp=inf)
    by = {
        ("X-Api-Key: key-of-acme",): "acme",
        ("X-Api-Key: key-of-none",): digest("key-of-none"),
        (f"Authorization: Bearer {token(SECRETS['JWT_KEY'])}",): "bob",
        (f"Authorization: Bearer {endless}",): "bob",
        (f"Authorization: Bearer {infinite}",): "127.0.0.0/24",
        (f"Authorization: Bearer {stale}", "X-Client: c"): "unverified:c",
        (f"Authorization: Bearer {forged}",): "127.0.0.0/24",
        ("X-Client: a\tb",): UNVERIFIED + digest("a\tb"),
        ("X-Client: \xe9",): UNVERIFIED + digest("\udce9"),
        (f"X-Client: {'n' * 65}",): UNVERIFIED + digest("n" * 65),
        ("X-Forwarded-For: 192.0.2.7",): "127.0.0.0/24",
    }
    for fields, expected in by.items():
        assert await name(program, *fields) == expected, fields
    assert await name(program, line="GET /plain?key=key-of-acme") == digest("key-of-acme")
    said = program.output.read_text()
    for secret in ("key-of-acme", "key-of-none", forged, stale, forged.rpartition(".")[2]):
        assert secret not in said


async def test_the_client_address_from_a_trusted_proxy_is_used(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    rules = RULES.format(port=service.port, hash="", trusted="[127.0.0.0/8]")
    program = gateway(rules, **SECRETS)
    assert await name(program, "X-Forwarded-For: 6.6.6.6, 192.0.2.7") == "192.0.2.0/24"


async def test_hashed_client_names_are_not_shown(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    rules = RULES.format(port=service.port, hash="hash: pepper", trusted="[]")
    program = gateway(rules, **SECRETS)
    names = [await name(program, field) for field in ("X-Client: c", "X-Api-Key: key-of-acme")]
    assert str(names[0]).startswith(f"{UNVERIFIED}hash-")
    assert str(names[1]).startswith("hash-")
    assert names[0] not in (digest("c"), names[1])
    program.reload(rules.replace("pepper", "salt"))
    assert await name(program, "X-Client: c") not in (None, names[0])


async def test_a_client_that_no_source_names_has_no_name(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    rules = RULES.format(port=service.port, hash="", trusted="[]")
    program = gateway(rules.replace("    - address: { ipv4: 24 }\n", ""), **SECRETS)
    assert await name(program) is None


PINNED = """\
clients:
  by:
    - api_key: {{ header: X-Api-Key, keys: {{ globex: "${{ACME_KEY}}" }} }}
    - jwt: {{ claim: sub }}
    - header: X-Client
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  thing:
    upstream_path: /thing
    version_header: X-Served
    pins: {{ globex: "1" }}
    endpoints: [ {{ path: /thing, version: {{ in: header, name: X-Version }} }} ]
    versions:
      "1": {{ service: s, lifecycle: {{ sunset: 2020-01-01, exempt: [{exempt}] }} }}
      "2": {{ service: s }}
"""


async def test_pins_and_exemptions_require_a_verified_client_name(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    exempt = "{ client: globex, until: 2099-01-01 }"
    program = gateway(PINNED.format(port=service.port, exempt=exempt), **SECRETS)
    proven = await get(program, "GET /thing", "X-Api-Key: key-of-acme")
    assert (proven.status, proven["x-served"]) == (200, "1")
    claimed = "X-Client: globex"
    assert (await get(program, "GET /thing", claimed)).status == 400
    assert (await get(program, "GET /thing", claimed, "X-Version: 1")).status == 410
    forged = jwt.encode({"sub": "globex"}, "o" * 32, "HS256")
    bearer = f"Authorization: Bearer {forged}"
    assert (await get(program, "GET /thing", bearer, "X-Version: 1")).status == 410


async def test_a_claim_with_a_lone_surrogate_does_not_fail_the_request(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    program = gateway(PINNED.format(port=service.port, exempt=""), **SECRETS)
    broken = jwt.encode({"sub": "a\ud800"}, "o" * 32, "HS256")
    bearer = f"Authorization: Bearer {broken}"
    assert (await get(program, "GET /thing", bearer, "X-Version: 2")).status == 200
    assert not program.log("log")


async def test_ipv4_clients_have_ipv4_addresses_on_an_ipv6_listener(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    rules = f"""
    trusted_proxies: [ 127.0.0.0/8 ]
    clients: {{ by: [ address: {{}} ] }}
    services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
    apis: {{ plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }} }}
    admin: {{ tokens: {{ ops: {{ token: "${{OPS}}", right: operate }} }} }}
    """
    more = {"GATEWAY_ADMIN_HOSTS": "api.test", "OPS": "o" * 32}
    program = gateway(rules, GATEWAY_HOST="::", GATEWAY_ADMIN_HOST="::", **more)
    assert await name(program) == "127.0.0.1"
    forwarded = "X-Forwarded-For: 192.0.2.7", "X-Request-Id: one"
    assert (await get(program, "GET /plain", *forwarded)).status == 200
    line = await logged(program, "one")
    assert (line["peer"], line["client"]) == (
        "127.0.0.1",
        "192.0.2.7",
    )  # the address that the trusted proxy sends
    assert b"\r\nX-Forwarded-For: 192.0.2.7, 127.0.0.1\r\n" in service.requests[-1]
    assert b"for=127.0.0.1;" in service.requests[-1]
    bare = await asyncio.to_thread(program.raw, b"GET /plain HTTP/1.0\r\n\r\n")  # no Host
    assert bare.startswith(b"HTTP/1.1 200 ")
    assert f"\r\nHost: 127.0.0.1:{program.port}\r\n".encode() in service.requests[-1]
    admin = replace(program, port=program.admin)
    await get(admin, "GET /usage", f"Authorization: Bearer {'w' * 32}")
    (wrong,) = await soon(lambda: program.log("admin_token_wrong"))
    assert wrong["peer"] == "127.0.0.1"
