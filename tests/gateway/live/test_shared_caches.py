"""Shared caches do not store responses that depend on the client."""

import pytest

from tests.gateway.kit import StartGateway, StartUpstream
from tests.gateway.talk import Answer, get

PUBLIC = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nVary: Accept-Encoding\r\n"
    b'Cache-Control: public, max-age=600, S-MaxAge=900, no-cache="a,b"\r\n'
    b"CDN-Cache-Control: max-age=600\r\nSurrogate-Control: max-age=600\r\n"
    b"X-Accel-Expires: 600\r\n\r\n{}"
)

RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
clients: {{ by: [ {by} ] }}
apis:
  h:
    default_version: "1"
    endpoints:
      - {{ path: "/v{{version}}/o", version: {{ in: path }} }}
      - {{ path: /o, version: {{ in: header, name: X-V }} }}
      - {{ path: /a, version: {{ in: accept, media_type: "application/vnd.o-v{{version}}+json" }} }}
    versions:
      "1":
        service: s
        lifecycle:
          sunset: 2020-01-01
          exempt:
            - {{ client: "{exempt}", until: 2099-01-01 }}
      "2":
        service: s
        brownout:
          percent: 100
          exempt: [ {{ client: "{exempt}" }} ]
      "3": {{ service: s, cutover: {{ via: "4", percent: 50 }} }}
      "4": {{ service: s, brownout: {{ percent: 100 }} }}
      "5": {{ service: s }}
    conversions: [ {{ between: ["3", "4"], changes: [] }} ]
"""
VIP = "X-Client: vip"


def vary(answer: Answer) -> set[str]:
    return {
        name.strip().lower()
        for line in answer.all("vary")
        for name in line.split(",")
        if name.strip().lower() != "accept-encoding"
    }


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("{ header: X-Client }", {"x-client"}),
        ("{ jwt: { claim: sub } }, { header: X-Client }", {"authorization", "x-client"}),
        ("{ api_key: { header: X-Key } }, { header: X-Client }", {"x-key", "x-client"}),
        ("{ api_key: { query: key } }, { header: X-Client }", {"x-client"}),
    ],
)
async def test_vary_lists_the_fields_that_identify_an_exempt_client(
    reloaded: StartGateway, upstream: StartUpstream, by: str, names: set[str]
) -> None:
    service = await upstream(PUBLIC)
    program = reloaded(RULES.format(port=service.port, by=by, exempt="vip"))
    for path, others, more in (
        ("/v1/o", 410, set()),
        ("/v2/o", 503, set()),
        ("/v3/o", 200, set()),
        ("/o", 410, {"x-v"}),
        ("/a", 410, {"accept"}),
    ):
        for fields, status in (((VIP,), 200), ((), others)):
            answer = await get(program, f"GET {path}", *fields)
            assert (answer.status, vary(answer)) == (status, names | more), path
            assert ("s-maxage" in answer["cache-control"].lower()) is (status == 200)
    # The client gets the first accepted version that has not ended for it.
    accept = "Accept: application/vnd.o-v1+json, application/vnd.o-v5+json"
    assert vary(await get(program, "GET /a", accept)) == names | {"accept"}
    for path in ("/v4/o", "/v5/o"):
        assert vary(await get(program, f"GET {path}")) == set(), "nobody is exempt"


async def test_responses_that_depend_on_the_address_are_not_cached(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(PUBLIC)
    program = reloaded(RULES.format(port=service.port, by="{ address: true }", exempt="127.0.0.1"))
    for path in ("/v1/o", "/v2/o", "/o"):
        answer = await get(program, f"GET {path}")
        assert (answer.status, answer["vary"]) == (200, "*")
        assert answer["cache-control"] == 'private, max-age=600, no-cache="a,b"'
        for name in ("cdn-cache-control", "surrogate-control", "x-accel-expires"):
            assert answer.all(name) == []
    shared = await get(program, "GET /v5/o")
    assert "public" in shared["cache-control"]
    assert shared["surrogate-control"] == "max-age=600"


async def test_refusals_that_depend_on_the_address_are_not_cached(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(PUBLIC)
    by = "{ address: true }"
    program = reloaded(RULES.format(port=service.port, by=by, exempt="192.0.2.7"))
    for path, status in (("/v1/o", 410), ("/v2/o", 503)):
        answer = await get(program, f"GET {path}")
        assert (answer.status, answer["vary"], answer["cache-control"]) == (status, "*", "no-store")
