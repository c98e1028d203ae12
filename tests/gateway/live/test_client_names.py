"""Who asks, over real sockets: named in the log, and never by a secret."""

import time

import jwt
import pytest

from gateway.core.clients import digest
from tests.gateway.kit import Program, StartGateway, StartUpstream
from tests.gateway.talk import OK, get, logged

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
    """Ask, and return the name in the log."""
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
    by = {
        ("X-Api-Key: key-of-acme",): "acme",
        ("X-Api-Key: key-of-none",): digest("key-of-none"),
        (f"Authorization: Bearer {token(SECRETS['JWT_KEY'])}",): "bob",
        (f"Authorization: Bearer {stale}", "X-Client: c"): "c",
        (f"Authorization: Bearer {forged}",): "127.0.0.0/24",
        ("X-Client: a\tb",): digest("a\tb"),
        ("X-Client: \xe9",): digest("\udce9"),
        (f"X-Client: {'n' * 65}",): digest("n" * 65),
        ("X-Forwarded-For: 192.0.2.7",): "127.0.0.0/24",
    }
    for fields, expected in by.items():
        assert await name(program, *fields) == expected, fields
    assert await name(program, line="GET /plain?key=key-of-acme") == digest("key-of-acme")
    said = program.output.read_text()
    for secret in ("key-of-acme", "key-of-none", forged, stale, forged.rpartition(".")[2]):
        assert secret not in said


async def test_a_trusted_proxy_is_believed(gateway: StartGateway, upstream: StartUpstream) -> None:
    service = await upstream(OK)
    rules = RULES.format(port=service.port, hash="", trusted="[127.0.0.0/8]")
    program = gateway(rules, **SECRETS)
    assert await name(program, "X-Forwarded-For: 6.6.6.6, 192.0.2.7") == "192.0.2.0/24"


async def test_asked_to_hash_it_shows_no_name(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    rules = RULES.format(port=service.port, hash="hash: pepper", trusted="[]")
    program = gateway(rules, **SECRETS)
    names = [await name(program, field) for field in ("X-Client: c", "X-Api-Key: key-of-acme")]
    assert all(str(each).startswith("hash-") for each in names)
    assert names[0] not in (digest("c"), names[1])
    program.reload(rules.replace("pepper", "salt"))
    assert await name(program, "X-Client: c") not in (None, names[0])


async def test_whom_nothing_names_has_no_name(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    rules = RULES.format(port=service.port, hash="", trusted="[]")
    program = gateway(rules.replace("    - address: { ipv4: 24 }\n", ""), **SECRETS)
    assert await name(program) is None
