"""Key sets over sockets: several workers share them, and an outage of the issuer costs nothing."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from gateway.access.key_sets import _FLOOR
from tests.gateway.access.test_key_sets import EC, OTHER, RSA, Issuer, jwk, serving, token
from tests.gateway.kit import Program, StartGateway, StartUpstream, children
from tests.gateway.live.bounds import total
from tests.gateway.talk import OK, get, soon

CONFIGURATION = """\
clients: {{ by: [ {{ jwt: {{ {source}, algorithms: [{algorithms}] }} }} ] }}
access: {{}}
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis: {{ plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }} }}
"""


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with serving(Issuer()) as issuer:
        yield issuer


async def statuses(program: Program, *tokens: str) -> Counter[int]:
    """Send each token on many connections, so that every worker gets some of them."""
    answers = [
        get(program, "GET /plain", f"Authorization: Bearer {text}")
        for text in tokens
        for _ in range(24)
    ]
    return Counter([answer.status for answer in await asyncio.gather(*answers)])


async def first_fetch(program: Program) -> None:
    """Make one worker fetch the keys, and wait until the others have them."""
    assert (await get(program, "GET /plain", f"Authorization: Bearer {token(RSA)}")).status == 200
    await soon(lambda: total(program, "gateway_key_fetches_total"))


@pytest.mark.parametrize(
    "discover", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["jwks", "discovery"]
)
async def test_all_workers_together_fetch_keys_once_for_unknown_key_ids(
    upstream: StartUpstream, gateway: StartGateway, issuer: Issuer, discover: bool
) -> None:
    source = f"discover: true, issuer: '{issuer.url}'" if discover else f"jwks: {issuer.url}/keys"
    port = (await upstream(OK)).port
    text = CONFIGURATION.format(source=source, algorithms="RS256", port=port)
    program = gateway(text, GATEWAY_WORKERS="2")
    claims = {"iss": issuer.url} if discover else {}
    good = token(RSA, **claims)
    assert (await get(program, "GET /plain", f"Authorization: Bearer {good}")).status == 200
    await soon(lambda: total(program, "gateway_key_fetches_total"))
    unknown = [token(RSA, f"k{number}", **claims) for number in range(10)]
    assert await statuses(program, good) == {200: 24}
    assert await statuses(program, *unknown) == {401: 240}
    assert issuer.fetches.count("/keys") == 1


@pytest.mark.slow
async def test_known_keys_outlive_reloads_and_workers_while_the_issuer_is_down(
    upstream: StartUpstream, gateway: StartGateway
) -> None:
    port = (await upstream(OK)).port
    async with serving(Issuer()) as issuer:
        issuer.keys = [jwk(RSA), jwk(EC, "e")]
        source = f"jwks: {issuer.url}/keys"
        text = CONFIGURATION.format(source=source, algorithms="RS256", port=port)
        program = gateway(text, GATEWAY_WORKERS="2")
        await first_fetch(program)
    for more in ("# again\n", ""):
        await asyncio.to_thread(program.reload, more + text)
        assert await statuses(program, token(RSA)) == {200: 24}
    text = CONFIGURATION.format(source=source, algorithms="RS256, ES256", port=port)
    await asyncio.to_thread(program.reload, text)
    assert await statuses(program, token(EC, "e", "ES256")) == {200: 24}
    for worker in children(program):
        worker.kill()
    await soon(lambda: len(program.log("worker_replaced")) == 2)
    assert await statuses(program, token(RSA), token(EC, "e", "ES256")) == {200: 48}
    assert program.log("keys_not_fetched")
    assert await statuses(program, token(RSA, "unknown")) == {401: 24}


@pytest.mark.slow
async def test_all_workers_take_up_rotated_keys_with_the_first_token_after_the_floor(
    upstream: StartUpstream, gateway: StartGateway, issuer: Issuer
) -> None:
    port = (await upstream(OK)).port
    source = f"jwks: {issuer.url}/keys"
    text = CONFIGURATION.format(source=source, algorithms="RS256", port=port)
    program = gateway(text, GATEWAY_WORKERS="2")
    await first_fetch(program)
    issuer.keys = [jwk(OTHER, "b")]
    await asyncio.sleep(_FLOOR)
    new = token(OTHER, "b")
    assert (await get(program, "GET /plain", f"Authorization: Bearer {new}")).status == 200
    await soon(lambda: total(program, "gateway_key_fetches_total") == 2)
    assert await statuses(program, new) == {200: 24}
    assert await statuses(program, token(RSA)) == {401: 24}
    assert issuer.fetches == ["/keys"] * 2
