"""The shortest check that the test tools and the stack work together."""

from aiohttp import ClientSession

from tests.gateway.kit import Stack, StartGateway, StartUpstream, rules


async def test_a_person_is_served_through_the_complete_stack(stack: Stack) -> None:
    async with ClientSession(stack.gateway.url) as client, client.get("/v1/person") as answer:
        assert await answer.json() == {"name": "Bob Charlie"}


async def test_a_response_of_a_scripted_upstream_is_converted(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 42\r\n\r\n"
        b'{"name":{"firstName":"A","lastName":"B"}} '
    )
    program = gateway(rules(scripted.port, via=True))
    async with ClientSession(program.url) as client, client.get("/v1/person") as answer:
        assert await answer.read() == b'{"name":"A B"}'
    assert scripted.requests[0].startswith(b"GET /person HTTP/1.1\r\n")
