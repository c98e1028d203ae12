"""Version names over sockets: aliases, and integers followed by dates."""

import json

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream
from tests.gateway.talk import OK, Answer, ask, connect

RULES = """\
version_header: API-Version
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  orders:
    version_format: [integer, date]
    match: nearest_lower
    aliases: {{ latest: 2026-01-31, v2: "2" }}
    endpoints:
      - path: "/{{version}}/orders"
        version: {{ in: path }}
      - path: /orders
        version:
          - {{ in: query, name: v }}
          - {{ in: header, name: X-API-Version }}
          - in: accept
            media_type: "application/vnd.orders.{{version}}+json"
            response_type: vendor
    versions:
      "1": {{ service: s }}
      "2": {{ service: s, lifecycle: {{ deprecated: 2020-01-01, successor: "2024-06-15" }} }}
      "2024-06-15": {{ service: s }}
      "2026-01-31": {{ service: s }}
"""


@pytest.fixture
async def service(upstream: StartUpstream) -> Scripted:
    return await upstream(OK)


@pytest.fixture
def program(reloaded: StartGateway, service: Scripted) -> Program:
    return reloaded(RULES.format(port=service.port))


async def get(to: Program, target: str, *fields: str) -> Answer:
    async with connect(to) as client:
        client.send(ask(f"GET {target}", *fields))
        return await client.answer()


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("1", "1"),
        ("2", "2"),
        ("v2", "2"),
        ("3", "2"),
        ("2024-06-15", "2024-06-15"),
        ("2025-12-31", "2024-06-15"),
        ("2026-01-31", "2026-01-31"),
        ("2026-07-01", "2026-01-31"),
        ("latest", "2026-01-31"),
    ],
)
async def test_an_alias_selects_its_version_in_every_mechanism(
    program: Program, service: Scripted, asked: str, served: str
) -> None:
    for target, *fields in (
        (f"/{asked}/orders",),
        (f"/orders?v={asked}",),
        ("/orders", f"X-API-Version: {asked}"),
        ("/orders", f"Accept: application/vnd.orders.{asked}+json"),
    ):
        answer = await get(program, target, *fields)
        assert (answer.status, answer["api-version"]) == (200, served), target
    assert len(service.requests) == 4


async def test_a_response_has_the_media_type_that_its_client_accepts(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    json = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    program = reloaded(RULES.format(port=(await upstream(json)).port))
    called = {"v2": "v2", "latest": "latest", "2026-01-31": "2026-01-31", "3": "2"}
    for asked, named in called.items():  # a request for 3 gets version 2
        answer = await get(program, "/orders", f"Accept: application/vnd.orders.{asked}+json")
        assert answer["content-type"] == f"application/vnd.orders.{named}+json"


async def test_an_alias_agrees_with_its_version_in_another_mechanism(program: Program) -> None:
    assert (await get(program, "/orders?v=v2", "X-API-Version: 2")).status == 200
    assert (await get(program, "/orders?v=latest", "X-API-Version: v2")).status == 400


async def test_a_successor_link_names_the_version_and_not_its_alias(program: Program) -> None:
    answer = await get(program, "/v2/orders")
    assert answer["link"] == '</2024-06-15/orders>; rel="successor-version"'


@pytest.mark.parametrize("asked", ["newest", "0", "v1", "2026-02-30", "Latest"])
async def test_unknown_version_names_are_refused(
    program: Program, service: Scripted, asked: str
) -> None:
    assert (await get(program, f"/{asked}/orders")).status == 404
    assert (await get(program, f"/orders?v={asked}")).status == 400
    assert service.requests == []


SOME = """\
clients: {{ by: [ {{ header: X-Client }} ] }}
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  orders:
    aliases: {{ latest: "3", stable: "2", "12": "1" }}
    default_version: "3"
    match: nearest_lower
    pins: {{ acme: "2", globex: "1" }}
    version_header: API-Version
    endpoints:
      - {{ path: "/v{{version}}/orders", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/stats", version: {{ in: path }}, versions: ["1", "2"] }}
      - {{ path: /stats, version: {{ in: header, name: X-V }}, versions: ["1", "2"] }}
      - {{ path: /legacy/stats, versions: ["1"] }}
    versions:
      "1": {{ service: s, lifecycle: {{ deprecated: 2020-01-01, successor: "3" }} }}
      "2": {{ service: s }}
      "3": {{ service: s }}
"""


@pytest.mark.parametrize(
    ("target", "fields", "status", "served", "code"),
    [
        # aliases of integers, one of which is itself a number
        ("/v12/orders", (), 200, "1", ""),
        ("/vstable/orders", (), 200, "2", ""),
        ("/vlatest/orders", (), 200, "3", ""),
        # an endpoint that some versions have, however they are named
        ("/v2/stats", (), 200, "2", ""),
        ("/vstable/stats", (), 200, "2", ""),
        ("/v3/stats", (), 404, None, "version_unknown"),
        ("/v4/stats", (), 404, None, "version_unknown"),
        ("/vlatest/stats", (), 404, None, "version_unknown"),
        ("/stats", ("X-V: 1",), 200, "1", ""),
        ("/stats", ("X-V: 3",), 400, None, "version_unknown"),
        # the default is of another version, a pin may be
        ("/stats", (), 400, None, "version_missing"),
        ("/stats", ("X-Client: acme",), 200, "2", ""),
        # an endpoint of one version, which requests need not name
        ("/legacy/stats", (), 200, "1", ""),
        ("/legacy/stats?v=3", ("X-V: 3", "X-Client: acme"), 200, "1", ""),
    ],
)
async def test_an_endpoint_serves_only_its_own_versions(
    service: Scripted,
    reloaded: StartGateway,
    target: str,
    fields: tuple[str, ...],
    status: int,
    served: str | None,
    code: str,
) -> None:
    program = reloaded(SOME.format(port=service.port))
    answer = await get(program, target, *fields)
    assert (answer.status, answer.all("api-version")) == (status, [served] if served else [])
    # The next version lacks this endpoint, so no link points to it.
    assert bool(answer.all("link")) == (target == "/v12/orders")
    if code:
        problem = json.loads(answer.body)
        assert (problem["code"], problem["supportedVersions"]) == (code, ["1", "2"])
        # A later version than 2 is also refused.
        assert problem["detail"].endswith("1 or 2, or stable or 12.")
    if target.startswith("/legacy"):
        assert answer.all("vary") == []


LABELS = """\
version_header: X-Served
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  dotnet:
    endpoints:
      - {{ path: /query, version: {{ in: query, name: api-version }} }}
      - {{ path: /header, version: {{ in: header, name: Stripe-Version }} }}
      - {{ path: "/apis/{{version}}/pods", version: {{ in: path }} }}
      - path: /media
        version:
          - {{ in: accept, media_type: "*/*; version={{version}}" }}
          - {{ in: content_type, media_type: "application/json; v={{version}}" }}
    aliases: {{ 1: 1.0 }}
    versions:
      1.0: {{ service: s }}
      1.10: {{ service: s }}
      v1beta1: {{ service: s }}
      2024-09-30.acacia: {{ via: 2024-01-01-preview }}
      2024-01-01-preview: {{ service: s }}
      2024-01: {{ service: s }}
      "1e5": {{ service: s }}
    conversions:
      - {{ between: [2024-09-30.acacia, 2024-01-01-preview], changes: [] }}
"""


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("1.0", "1.0"),
        ("1.10", "1.10"),
        ("v1beta1", "v1beta1"),
        ("2024-01", "2024-01"),
        ("1e5", "1e5"),
        ("2024-01-01-preview", "2024-01-01-preview"),
        ("1", "1.0"),
        ("2024-09-30.acacia", "2024-01-01-preview"),
    ],
)
async def test_a_service_gets_the_label_that_the_client_wrote(
    reloaded: StartGateway, service: Scripted, label: str, told: str
) -> None:
    """An alias, and a version that another one serves, are replaced by the service's label."""
    program = reloaded(LABELS.format(port=service.port))
    served = "1.0" if label == "1" else label
    for target, fields, sent in (
        (f"/query?api-version={label}", (), f"GET /query?api-version={told} "),
        (f"/apis/{label}/pods", (), f"GET /apis/{told}/pods "),
        ("/header", (f"Stripe-Version: {label}",), f"Stripe-Version: {told}\r\n"),
        ("/media", (f"Accept: a/b; version={label}",), f"Accept: a/b; version={told}\r\n"),
    ):
        response = await get(program, target, *fields)
        assert (response.status, response["x-served"]) == (200, served)
        assert sent.encode() in service.requests[-1]


async def test_an_unknown_label_is_refused_with_the_list_of_all_labels(
    reloaded: StartGateway, service: Scripted
) -> None:
    response = await get(reloaded(LABELS.format(port=service.port)), "/query?api-version=1.1")
    problem = json.loads(response.body)
    assert (response.status, problem["code"]) == (400, "version_unknown")
    assert problem["supportedVersions"] == [
        *("1.0", "1.10", "v1beta1", "2024-09-30.acacia", "2024-01-01-preview"),
        *("2024-01", "1e5"),
    ]
