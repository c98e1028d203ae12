"""The host policy: the Host field that a service gets."""

import pytest

from tests.gateway.kit import StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, get


@pytest.mark.parametrize(
    ("policy", "host"),
    {
        "": "api.test",
        ", host: client": "api.test",
        ", host: target": "127.0.0.1:{port}",
        ", host: people.internal": "people.internal",
        ', host: "people.internal:81"': "people.internal:81",
    }.items(),
    ids=["unsaid", "client", "target", "name", "name and port"],
)
async def test_the_host_sent_to_a_service_follows_the_policy(
    gateway: StartGateway, upstream: StartUpstream, policy: str, host: str
) -> None:
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port, extra=policy))
    for _ in range(2):
        assert (await get(program)).status == 200
        head = scripted.requests[-1].decode()
        assert head.count("Host: ") == 2
        assert f"\r\nHost: {host.format(port=scripted.port)}\r\n" in head
        assert "\r\nX-Forwarded-Host: api.test\r\n" in head
