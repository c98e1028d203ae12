"""CORS preflights: the service responds to them, and they do not count as usage of a version."""

import asyncio
import json
from dataclasses import replace

import pytest

from tests.gateway.kit import Program, StartGateway, StartUpstream
from tests.gateway.live.conftest import House
from tests.gateway.talk import Answer, get, soon

ORIGIN = "Origin: https://app.example"
METHOD = "Access-Control-Request-Method"
ALLOWED = "access-control-allow-origin"
FROM_SERVICE = (
    b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: https://app.example\r\n\r\n"
)

RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
clients: {{ by: [ header: X-Client ] }}
{cors}
apis:
  plain:
    service: s
    endpoints: [ {{ path: /plain, methods: [GET] }}, {{ path: /write, methods: [POST, PUT] }} ]
  versioned:
    endpoints:
      - {{ path: "/v{{version}}/o", version: {{ in: path }}, methods: [GET] }}
      - {{ path: /o, version: {{ in: header, name: X-V }}, methods: [GET] }}
    versions:
      "1": {{ service: s, lifecycle: {{ sunset: 2020-01-01 }} }}
      "2":
        service: s
        lifecycle:
          {{ sunset: 2020-01-01, exempt: [ {{ client: vip, until: 2099-01-01 }} ] }}
      "3": {{ service: s, brownout: {{ percent: 100 }} }}
      "4": {{ service: s, brownout: {{ percent: 100, exempt: [ {{ client: vip }} ] }} }}
      "5": {{ service: s, brownout: {{ percent: 99.9 }} }}
      "6": {{ service: s }}
"""


@pytest.fixture
def program(configured: StartGateway, house: House) -> Program:
    house.service.answer = FROM_SERVICE
    return configured(RULES.format(port=house.service.port, cors=""))


def asks(path: str, method: str = "GET", *more: str) -> tuple[str, ...]:
    return f"OPTIONS {path}", ORIGIN, f"{METHOD}: {method}", *more


async def answers(program: Program, *requests: tuple[str, ...]) -> list[Answer]:
    return [await get(program, *request) for request in requests]


@pytest.mark.parametrize(
    "asked",
    [
        asks("/plain"),
        asks("/plain", "HEAD"),
        asks("/write", "POST"),
        asks("/write", "PUT"),
        asks("/v6/o"),
        asks("/o"),  # the request names no version
        asks("/v2/o"),  # an exempt client, whom a preflight cannot name
        asks("/v4/o"),
        asks("/v5/o"),  # the request has another draw
    ],
)
async def test_a_preflight_for_an_allowed_method_reaches_the_service(
    program: Program, house: House, asked: tuple[str, ...]
) -> None:
    answer = await get(program, *asked)
    assert (answer.status, answer[ALLOWED]) == (204, "https://app.example")
    assert house.service.asked[0].line.startswith(asked[0].encode())


@pytest.mark.parametrize(
    ("asked", "status", "allow"),
    [
        (("OPTIONS /plain",), 204, ["GET, HEAD, OPTIONS"]),
        (("OPTIONS /plain", ORIGIN), 204, ["GET, HEAD, OPTIONS"]),
        (("OPTIONS /plain", f"{METHOD}: GET"), 204, ["GET, HEAD, OPTIONS"]),
        (asks("/plain", "GET", "Max-Forwards: 0"), 204, ["GET, HEAD, OPTIONS"]),
        (asks("/plain", "PUT"), 204, ["GET, HEAD, OPTIONS"]),
        (asks("/write"), 204, ["POST, PUT, OPTIONS"]),
        (asks("/v1/o"), 410, []),
        (asks("/v3/o"), 503, []),
        (asks("/v9/o"), 404, []),
    ],
)
async def test_any_other_options_is_answered_by_the_gateway(
    program: Program, house: House, asked: tuple[str, ...], status: int, allow: list[str]
) -> None:
    answer = await get(program, *asked)
    assert (answer.status, answer.all("allow"), answer.all(ALLOWED)) == (status, allow, [])
    assert house.service.asked == []


@pytest.mark.parametrize("path", ["/plain", "/v1/o", "/v3/o", "/v6/o", "/o"])
async def test_cors_answers_preflights_where_the_endpoint_names_its_methods(
    configured: StartGateway, house: House, path: str
) -> None:
    house.service.answer = FROM_SERVICE
    cors = "cors: { origins: [https://app.example] }"
    program = configured(RULES.format(port=house.service.port, cors=cors))
    answer = await get(program, *asks(path))
    assert (answer.status, answer[ALLOWED]) == (204, "https://app.example")
    assert answer["access-control-allow-methods"] == "GET"
    assert house.service.asked == []
    other = "OPTIONS /plain", "Origin: https://other.example", f"{METHOD}: GET"
    await get(program, *other)  # an origin that the service may allow
    assert len(house.service.asked) == 1


COUNTED = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
clients: {{ by: [ header: X-Client ] }}
apis:
  h:
    default_version: "1"
    endpoints: [ {{ path: /o, version: {{ in: header, name: X-V }} }} ]
    versions: {{ "1": {{ service: s }}, "2": {{ service: s }} }}
  plain: {{ service: s, endpoints: [ {{ path: /plain, methods: [GET] }} ] }}
"""


async def test_preflights_do_not_count_as_usage(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(FROM_SERVICE)
    program = gateway(COUNTED.format(port=service.port), GATEWAY_ADMIN_HOSTS="api.test")
    asked = "X-V: 2", "X-Client: web"
    await answers(
        *(program, asks("/o"), ("GET /o", *asked), asks("/o"), ("OPTIONS /o", *asked)),
        *(asks("/plain"), ("GET /plain",), ("PUT /plain",), asks("/plain")),
    )
    await soon(lambda: len(program.log("request")) == 8)

    async def admin(path: str) -> Answer:
        return await get(replace(program, port=program.admin), f"GET {path}")

    rows: dict[tuple[str, ...], tuple[int, int]] = {}
    while ("plain", "", "", "GET /plain") not in rows:  # counts arrive once a second
        await asyncio.sleep(0.1)
        rows = {
            tuple(row[key] for key in ("api", "version", "client", "operation")): (
                *(row["count"], row["refused"]),
            )
            for row in json.loads((await admin("/usage")).body)["usage"]
        }
    assert rows == {
        ("h", "2", "web", "GET /o"): (1, 0),
        ("h", "2", "web", "OPTIONS /o"): (1, 0),
        ("plain", "", "", "GET /plain"): (1, 0),
    }
    history = json.loads((await admin("/history/h/1?by=minute")).body)
    assert history["lines"] == []
    verdict = json.loads((await admin("/retire/h/1?within=1s")).body)
    assert any("nobody has called it" in reason["text"] for reason in verdict["reasons"])
    metrics = (await admin("/metrics")).body.decode()
    assert 'http_request_method="OPTIONS"' in metrics
