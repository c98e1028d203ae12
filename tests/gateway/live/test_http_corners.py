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


async def test_how_often_a_request_may_be_forwarded(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """RFC 9110, section 7.6.2: OPTIONS and TRACE are counted down, and end here with 0."""
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port))
    traced = await get(program, "TRACE /plain", "Max-Forwards: 0")
    assert (traced.status, traced["allow"]) == (405, "OPTIONS")
    assert (await get(program, "OPTIONS /plain", "Max-Forwards: 0")).status == 204
    assert (await get(program, "OPTIONS /nowhere", "Max-Forwards: 0")).status == 404
    assert not scripted.requests
    sent = [("TRACE", "1", "0"), ("OPTIONS", "10", "9"), ("OPTIONS", "x", "x"), ("GET", "0", "0")]
    for method, given, forwarded in sent:
        assert (await get(program, f"{method} /plain", f"Max-Forwards: {given}")).status == 200
        head = bytes(scripted.requests[-1]).lower()
        assert b"max-forwards: %b\r\n" % forwarded.encode() in head
