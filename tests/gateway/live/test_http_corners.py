"""Corners of HTTP that checkers look into."""

from tests.gateway.kit import StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, ask, connect, get


async def test_options_for_the_gateway_itself(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """RFC 9110, section 9.3.7."""
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port))
    answer = await get(program, "OPTIONS *")
    assert (answer.status, answer.body) == (204, b"")
    assert (await get(program, "OPTIONS /nowhere")).status == 404
    assert not scripted.requests


async def test_a_body_too_large_ends_its_connection(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK)
    program = gateway("limits: { body: 10 }\n" + rules(scripted.port))
    async with connect(program) as client:
        client.send(ask("POST /plain", "Content-Length: 11", body=b"x" * 11))
        answer = await client.answer()
        assert (answer.status, answer["connection"]) == (413, "close")
        assert await client.rest() == b""
