"""Version selection over sockets: dates, ranges, defaults, and pinned clients."""

import json

import pytest

from tests.gateway.kit import Program, StartGateway, StartUpstream
from tests.gateway.talk import OK, Answer, get, soon

RULES = """\
clients: {{ by: [ {{ header: X-Client }} ] }}
version_header: X-Served
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  dated:
    version_format: date
    match: nearest_lower
    default_version: 2025-01-01
    pins: {{ acme: 2024-01-01 }}
    versions: {{ 2024-01-01: {{ service: s }}, 2025-01-01: {{ via: 2024-01-01 }} }}
    conversions:
      - between: [2024-01-01, 2025-01-01]
        changes: [ {{ default: {{ field: new, value: true }} }} ]
    endpoints:
      - {{ path: "/dated/{{version}}", version: {{ in: path }} }}
      - {{ path: /dated, version: {{ in: header, name: Api-Version }}, methods: [GET] }}
      - {{ path: /old, version: {{ in: query, name: v }}, versions: [2024-01-01] }}
  semantic:
    version_format: semantic
    ranges: true
    version_header: X-Own
    versions:
      1.2.0: {{ service: s }}
      1.10.0: {{ service: s }}
      2.0.0-rc.1: {{ service: s }}
    endpoints:
      - {{ path: /query, version: {{ in: query, name: v }} }}
      - {{ path: /some, version: {{ in: query, name: v }}, versions: [1.2.0, 2.0.0-rc.1] }}
      - {{ path: "/v{{version}}/path", version: {{ in: path }} }}
      - path: /accept
        version: {{ in: accept, media_type: "a/b-v{{version}}+json", response_type: vendor }}
      - path: /any
        version:
          in: accept
          media_type: "a/b-v{{version}}+json"
          response_type: vendor
          default: 1.2.0
"""
JSON = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Served: theirs\r\n"
    b"Content-Length: 7\r\n\r\n"
    b'{"a":1}'
)


@pytest.fixture
async def asked(reloaded: StartGateway, upstream: StartUpstream) -> tuple[Program, list[bytes]]:
    service = await upstream(JSON)
    return reloaded(RULES.format(port=service.port)), service.requests


def problem(answer: Answer) -> tuple[int, str, list[str]]:
    body = json.loads(answer.body)
    return answer.status, body["code"], body["supportedVersions"]


async def test_a_date_selects_the_latest_baseline_up_to_it(
    asked: tuple[Program, list[bytes]],
) -> None:
    gateway, requests = asked
    dates = {
        "2024-01-01": "2024-01-01",
        "2024-12-31": "2024-01-01",
        "2025-01-01": "2025-01-01",
        "2031-07-09": "2025-01-01",
    }
    for date, served in dates.items():
        answer = await get(gateway, "GET /dated", f"Api-Version: {date}")
        assert (answer.status, answer["x-served"]) == (200, served)
        coded = (
            ", Accept-Encoding" if served == "2025-01-01" else ""
        )  # responses of this version are converted
        assert answer["vary"] == f"Api-Version, X-Client{coded}"
        assert (b'"new":true' in answer.body) == (served == "2025-01-01")
    offer = ["2024-01-01", "2025-01-01"]
    for date, code in {"2023-12-31": "version_unknown", "2024-13-01": "version_malformed"}.items():
        answer = await get(gateway, "GET /dated", f"Api-Version: {date}")
        assert problem(answer) == (400, code, offer)
        assert not answer.all("x-served")
        assert problem(await get(gateway, f"GET /dated/{date}")) == (404, code, offer)
    assert (await get(gateway, "GET /dated/2024-06-30"))["x-served"] == "2024-01-01"
    assert requests[-1].startswith(b"GET /dated/2024-01-01 ")


async def test_a_header_precedes_a_pin_and_a_pin_precedes_the_default(
    asked: tuple[Program, list[bytes]],
) -> None:
    gateway, _ = asked
    assert (await get(gateway, "GET /dated"))["x-served"] == "2025-01-01"
    assert (await get(gateway, "GET /dated", "X-Client: acme"))["x-served"] == "2024-01-01"
    said = await get(gateway, "GET /dated", "X-Client: acme", "Api-Version: 2025-01-01")
    assert said["x-served"] == "2025-01-01"
    await soon(lambda: len(gateway.log("request")) == 3)
    lines = gateway.log("request")
    assert [line["chosen_by"] for line in lines] == ["default", "pin", "header"]
    assert [line.get("client") for line in lines] == [None, "acme", "acme"]
    refused = await get(gateway, "POST /dated", "X-Client: acme", "Content-Length: 0")
    assert (refused.status, refused["x-served"]) == (405, "2024-01-01")
    allowed = await get(gateway, "OPTIONS /dated", "X-Client: acme")
    assert (allowed.status, allowed["x-served"]) == (204, "2024-01-01")


async def test_a_range_selects_the_highest_version_in_it(
    asked: tuple[Program, list[bytes]],
) -> None:
    gateway, requests = asked
    for text in ("1.x", "1.2+", "1.2%2B", "1+"):
        assert (await get(gateway, f"GET /query?v={text}"))["x-own"] == "1.10.0"
    assert (await get(gateway, "GET /query?v=1.2.x"))["x-own"] == "1.2.0"
    assert (await get(gateway, "GET /query?v=2.0.0-rc.1"))["x-own"] == "2.0.0-rc.1"
    assert (await get(gateway, "GET /v1.2+/path"))["x-own"] == "1.10.0"
    assert requests[-1].startswith(b"GET /v1.10.0/path ")
    offer = ["1.2.0", "1.10.0", "2.0.0-rc.1"]
    assert problem(await get(gateway, "GET /query?v=1.2%20")) == (400, "version_malformed", offer)
    assert problem(await get(gateway, "GET /query?v=2.x")) == (400, "version_unknown", offer)
    assert problem(await get(gateway, "GET /query")) == (400, "version_missing", offer)


async def test_an_endpoint_selects_among_its_own_versions(
    asked: tuple[Program, list[bytes]],
) -> None:
    gateway, _ = asked
    for text in ("1.x", "1.2+", "1+"):
        answer = await get(gateway, f"GET /some?v={text}")
        assert (answer.status, answer["x-own"]) == (200, "1.2.0")
    assert (await get(gateway, "GET /old?v=2024-02-01"))["x-served"] == "2024-01-01"
    refused = await get(gateway, "GET /old?v=2031-01-01")
    assert problem(refused) == (400, "version_unknown", ["2024-01-01"])
    for text in ("2.x", "1.3+", "1.10.0"):
        refused = await get(gateway, f"GET /some?v={text}")
        assert problem(refused) == (400, "version_unknown", ["1.2.0", "2.0.0-rc.1"])
        detail = json.loads(refused.body)["detail"]
        assert detail.endswith("; use 1.2.0 or 2.0.0-rc.1, or a range such as 1.x or 1.2+.")


@pytest.mark.parametrize(
    ("accept", "served"),
    [
        ("a/b-v1.x+json", "1.10.0"),
        ("a/b-v1.2++json", "1.10.0"),
        ("a/b-v1.2.0+json;q=0.5, a/b-v1.x+json", "1.10.0"),
        ("a/b-v2.x+json, a/b-v1.2.x+json;q=0.1", "1.2.0"),
    ],
)
async def test_a_range_in_a_media_type_selects_the_highest_version(
    asked: tuple[Program, list[bytes]], accept: str, served: str
) -> None:
    gateway, _ = asked
    answer = await get(gateway, "GET /accept", f"Accept: {accept}")
    assert (answer["x-own"], answer["content-type"]) == (served, f"a/b-v{served}+json")


@pytest.mark.parametrize(
    ("accept", "called"),
    [
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("a/b-v1.2.0+json", "a/b-v1.2.0+json"),
    ],
)
async def test_a_response_type_names_a_version_only_if_accept_does(
    asked: tuple[Program, list[bytes]], accept: str, called: str
) -> None:
    gateway, _ = asked
    answer = await get(gateway, "GET /any", f"Accept: {accept}")
    assert (answer["x-own"], answer["content-type"]) == ("1.2.0", called)


async def test_an_error_of_the_service_names_the_version(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    program = reloaded(RULES.format(port=service.port).replace(str(service.port), "9"))
    answer = await get(program, "GET /dated")
    assert (answer.status, answer["x-served"]) == (502, "2025-01-01")
