"""What the gateway makes of a message leads to no other host, and obeys the limits on what arrives.

All tests of this file share one gateway.
"""

import pytest

from tests.gateway.kit import StartGateway, StartUpstream
from tests.gateway.talk import get


@pytest.mark.parametrize("sign", ["\\", "\t/", "\t\\", "\\\\", "\t\t/"])
async def test_no_path_of_a_service_becomes_another_host(
    reloaded: StartGateway, upstream: StartUpstream, sign: str
) -> None:
    """Browsers read a backslash as a slash and skip tabs, so that two of them begin a host."""
    path = f"/base/{sign}evil.test/x"
    head = f"HTTP/1.1 200 OK\r\nLocation: {path}\r\nContent-Location: {path}\r\nLink: <{path}>\r\n"
    service = await upstream(f"{head}Content-Length: 0\r\n\r\n".encode())
    gateway = reloaded(f"""
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis:
  files: {{ service: s, endpoints: [ {{ path: "/{{rest*}}", upstream_path: "/base/{{rest*}}" }} ] }}
""")
    answer = await get(gateway, "GET /a")
    assert answer["location"] == answer["content-location"] == f"/./{sign}evil.test/x"
    assert answer["link"] == f"</./{sign}evil.test/x>"
