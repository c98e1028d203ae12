"""Rate limits over sockets: whose requests are counted, responses, workers, reloads and counts."""

import json
from dataclasses import replace

import pytest

from tests.gateway.kit import Program, StartGateway, children, wait_for
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Answer, answer, ask, get

QUOTA = "https://iana.org/assignments/http-problem-types#quota-exceeded"
RULES = """
services: { told: { targets: ["http://${TOLD}"] } }
clients:
  by:
    - api_key: { header: X-Key, keys: { c0: k0, c1: k1, c2: k2, c3: k3, c4: k4, c5: k5, c6: k6 } }
    - header: X-Client
trusted_proxies: [127.0.0.1/32]
rate_limits:
  - { name: default, by: client, rate: 100/min, burst: 3, apis: [orders] }
  - { name: exports, by: api, rate: 4/h, apis: [orders], versions: ["1"] }
  - { name: c1, by: client, rate: 1/d, clients: [c1], apis: [orders] }
  - { name: site, by: address, rate: 2/d, apis: [plain] }
apis:
  orders:
    endpoints:
      - { path: "/v{version}/o", version: { in: path }, methods: [GET] }
    versions:
      "1":
        service: told
        errors: { body: { error: "{code}" }, codes: { rate_limited: slow_down } }
        lifecycle: { deprecated: 2020-01-01 }
      "2": { service: told }
  plain:
    cors: { origins: ["https://app.test"] }
    service: told
    endpoints: [ { path: /plain } ]
  free: { service: told, endpoints: [ { path: /free } ] }
"""


pytestmark = pytest.mark.usefixtures("house")


@pytest.fixture(scope="module")
def program(module_gateway: StartGateway, shared_house: House) -> Program:
    """Start a gateway with two workers. Each test has its own client, whose buckets are full."""
    return module_gateway(RULES, TOLD=shared_house.told, GATEWAY_WORKERS="2")


def several(program: Program, count: int, path: str, *lines: str) -> list[int]:
    return [get(program, path, *lines).status for _ in range(count)]


def test_all_workers_share_the_bucket_of_a_client(program: Program) -> None:
    assert several(program, 12, "/v2/o", "X-Key: k0") == [200] * 3 + [429] * 9


def test_a_refused_request_takes_no_token_of_other_limits(program: Program) -> None:
    answers = [get(program, "/v2/o", "X-Key: k1") for _ in range(2)]
    assert [each.status for each in answers] == [200, 429]
    assert [each.one("RateLimit")[:13] for each in answers] == [b'"default";r=2'] * 2
    assert answers[1].json["violated-policies"] == ["c1"]


def test_responses_have_the_fields_and_the_problem_type_of_the_draft(
    program: Program, house: House
) -> None:
    house.service.answer = answer(b"{}", 'RateLimit: "own";r=7;t=1')
    admitted, _, _, refused = [get(program, "/v2/o", "X-Key: k2") for _ in range(4)]
    assert admitted.one("RateLimit-Policy") == b'"default";q=100;w=60'
    assert admitted.all("RateLimit") == [b'"own";r=7;t=1', b'"default";r=2;t=1']
    assert (refused.status, refused.one("Retry-After")) == (429, b"1")
    assert refused.one("RateLimit-Policy") == b'"default";q=100;w=60'
    assert refused.one("RateLimit") == b'"default";r=0;t=2'
    assert refused.one("Cache-Control") == b"no-store"
    assert refused.json == {
        "type": QUOTA,
        "title": "Too many requests",
        "status": 429,
        "detail": "The limit 'default' of 100 requests in a minute is exceeded; try again in 1 s.",
        "instance": "/v2/o",
        "code": "rate_limited",
        "violated-policies": ["default"],
    }


def test_a_refusal_has_the_error_format_of_its_version(program: Program) -> None:
    *_, refused = [get(program, "/v1/o", "X-Key: k3") for _ in range(4)]
    assert (refused.status, refused.json) == (429, {"error": "slow_down"})
    assert refused.one("RateLimit-Policy") == b'"default";q=100;w=60, "exports";q=4;w=3600'
    assert refused.all("Deprecation")
    (line,) = wait_for(lambda: requests(program, refused))
    assert (line["code"], line["client"], line["version"]) == ("rate_limited", "c3", "1")


def requests(program: Program, sent: Answer) -> list[dict[str, object]]:
    number = sent.one("X-Request-Id").decode()
    return [line for line in program.log("request") if line["request_id"] == number]


def test_a_client_cannot_escape_its_limit_by_another_unproven_name(program: Program) -> None:
    site = "X-Forwarded-For: 192.0.2.7"
    named = [get(program, "/v2/o", site, f"X-Client: c{index}").status for index in range(2)]
    guessed = get(program, "/v2/o", site, "X-Key: guessed").status
    assert [*named, guessed, *several(program, 1, "/v2/o", site)] == [200, 200, 200, 429]
    assert several(program, 1, "/v2/o", "X-Forwarded-For: 192.0.2.8", "X-Client: c0") == [200]


def test_addresses_of_an_ipv6_site_share_a_bucket(program: Program) -> None:
    sites = ("2001:db8::1", "2001:db8::2", "2001:db8::3:4", "2001:db8:0:1::1")
    found = [get(program, "/plain", f"X-Forwarded-For: {site}").status for site in sites]
    assert found == [200, 200, 429, 200]


def test_requests_that_no_service_answers_count(program: Program) -> None:
    methods = ("OPTIONS", "HEAD", "PUT", "GET")
    found = [ask(program, method, "/v2/o", "X-Key: k4").status for method in methods]
    assert found == [204, 200, 405, 429]


def test_preflights_and_apis_without_limits_are_not_limited(program: Program) -> None:
    preflight = "Origin: https://app.test", "Access-Control-Request-Method: GET"
    sent = [ask(program, "OPTIONS", "/v2/o", *preflight, "X-Key: k5") for _ in range(5)]
    sent += [get(program, "/free", "X-Key: k5") for _ in range(5)]
    assert {each.status for each in sent} == {200}
    assert not any(each.all("RateLimit") for each in sent)


def test_a_script_can_read_the_refusal_and_its_fields(program: Program) -> None:
    lines = "X-Forwarded-For: 192.0.2.11", "Origin: https://app.test"
    *_, refused = [get(program, "/plain", *lines) for _ in range(3)]
    assert (refused.status, refused.one("Access-Control-Allow-Origin")) == (
        429,
        lines[1][8:].encode(),
    )
    names = refused.members("Access-Control-Expose-Headers")
    assert {"retry-after", "ratelimit", "ratelimit-policy"} <= {*names}
    preflight = ask(program, "OPTIONS", "/plain", *lines, "Access-Control-Request-Method: GET")
    assert preflight.status == 204


def test_a_refusal_does_not_wait_for_the_body(program: Program) -> None:
    site = "X-Forwarded-For: 192.0.2.9"
    several(program, 2, "/plain", site)
    sent = ask(program, "POST", "/plain", site, "Content-Length: 1000000")
    assert (sent.status, sent.json["code"]) == (429, "rate_limited")


def test_refused_requests_are_counted_and_are_no_use_of_a_version(program: Program) -> None:
    several(program, 5, "/v2/o", "X-Key: k6")

    def usage() -> list[int]:
        rows = json.loads(admin(program, "/usage?api=orders"))["usage"]
        return [row["count"] for row in rows if row["client"] == "c6"]

    wait_for(lambda: usage() == [3])
    text = admin(program, "/metrics")
    assert 'gateway_rate_limited_requests_total{api="orders",limit="default"}' in text
    assert 'gateway_rate_limited_requests_total{api="orders",limit="c6"}' not in text


def admin(program: Program, path: str) -> str:
    return get(replace(program, port=program.admin), path, "Host: localhost").body.decode()


def test_a_reload_keeps_buckets_and_applies_a_changed_rate_at_once(program: Program) -> None:
    slow = RULES.replace("100/min", "1/h")
    program.reload(slow)
    assert several(program, 4, "/v2/o", "X-Client: x") == [200] * 3 + [429]
    program.reload(f"{slow}\n# the same limits")
    assert several(program, 1, "/v2/o", "X-Client: x") == [429]
    program.reload(RULES.replace("100/min", "1000/s"))
    wait_for(lambda: several(program, 1, "/v2/o", "X-Client: x") == [200])


@pytest.mark.slow
def test_a_replaced_worker_keeps_the_buckets(program: Program) -> None:
    site = "X-Forwarded-For: 192.0.2.10"
    assert several(program, 2, "/plain", site) == [200, 200]
    for worker in children(program):
        worker.kill()
    wait_for(lambda: len(program.log("worker_replaced")) == 2)
    assert several(program, 2, "/plain", site) == [429, 429]
