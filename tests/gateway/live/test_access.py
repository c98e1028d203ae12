"""`access` over sockets: the clients that are accepted, and the refusals for the others."""

import asyncio
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from aiohttp import ClientSession

from tests.gateway.access.test_key_sets import RSA, jwk, token
from tests.gateway.authority import Authority
from tests.gateway.kit import Program, StartGateway, StartUpstream, run_command
from tests.gateway.live.bounds import total
from tests.gateway.live.conftest import House
from tests.gateway.live.test_tls import ask as ask_tls
from tests.gateway.live.test_tls import client
from tests.gateway.talk import OK, Answer, get, logged, soon

CLIENTS = f"""\
clients:
  by:
    - api_key:
        header: X-Api-Key
        keys:
          acme: key-of-acme
          moving:
            - {{ key: old-key, expires: 2020-01-01 }}
            - {{ sha256: {sha256(b"new-key").hexdigest()}, scopes: [orders] }}
    - api_key: {{ query: key, keys: {{ beta: key-of-beta }} }}
    - api_key: {{ basic: password, keys: {{ gamma: key-of-gamma }} }}
    - header: X-Client
"""
APIS = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  plain:
    service: s
    access: {{ by: [api_key] }}
    endpoints:
      - {{ path: /plain }}
      - {{ path: /open, access: open }}
      - {{ path: /acme, access: {{ clients: [acme] }} }}
      - {{ path: /orders, access: {{ scopes: [orders] }} }}
      - {{ path: /secret, access: {{ forward: false }} }}
  person:
    access: {{ clients: [acme] }}
    upstream_path: /person
    endpoints:
      - {{ path: "/v{{version}}/person", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/get", version: {{ in: path }}, methods: [GET], access: {{}} }}
    versions:
      "1": {{ service: s, access: open }}
      "2":
        service: s
        errors:
          body: {{ error: "{{code}}", status: "{{status}}" }}
          codes: {{ unauthenticated: auth, default: other }}
      "3": {{ service: s, lifecycle: {{ sunset: 2020-01-01 }} }}
      "4":
        service: s
        lifecycle: {{ sunset: 2020-01-01, exempt: [{{ client: acme, until: 2999-01-01 }}] }}
    conversions: []
"""
BASIC = "Authorization: Basic " + b64encode(b"anybody:key-of-gamma").decode()


@pytest.fixture
def program(configured: StartGateway, house: House) -> Program:
    return configured(CLIENTS + APIS.format(port=house.service.port))


def problem(answer: Answer) -> tuple[int, str, str]:
    found = json.loads(answer.body)
    return answer.status, found["code"], found["detail"]


@pytest.mark.parametrize(
    ("line", "fields", "status"),
    [
        ("GET /plain", ["X-Api-Key: key-of-acme"], 200),
        ("GET /plain", ["X-Api-Key: new-key"], 200),
        ("GET /plain?key=key-of-beta", [], 200),
        ("GET /plain?a=1&%6bey=key%2Dof-beta", [], 200),
        ("GET /plain", [BASIC], 200),
        ("GET /open", [], 200),
        ("GET /open", ["X-Api-Key: wrong"], 200),
        ("GET /acme", ["X-Api-Key: key-of-acme"], 200),
        ("GET /orders", ["X-Api-Key: new-key"], 200),
        ("GET /v1/person", [], 200),
        ("GET /v2/person", ["X-Api-Key: key-of-acme"], 200),
        ("GET /v4/person", ["X-Api-Key: key-of-acme"], 200),
        ("GET /v2/get", ["X-Api-Key: new-key"], 200),
        ("GET /v9/person", [], 404),
        ("GET /nowhere", [], 404),
        ("GET /v3/person", [], 410),
        ("GET /v4/person", [], 401),
        ("GET /v4/person", ["X-Client: acme"], 401),
        ("POST /v2/get", [], 401),
        ("POST /v2/get", ["X-Api-Key: new-key"], 405),
    ],
)
async def test_the_innermost_access_decides(
    program: Program, line: str, fields: list[str], status: int
) -> None:
    assert (await get(program, line, *fields)).status == status


NONE = "This resource needs an API key, and the request has none."
UNKNOWN = "The API key in the X-Api-Key header is unknown."
OTHER = "The credential is valid, but its client may not use this resource."
SCOPE = "The credential lacks the scope orders."
MALFORMED = "The API key in the Authorization header is not Basic credentials (RFC 7617)."


@pytest.mark.parametrize(
    ("line", "fields", "code", "detail"),
    [
        ("GET /plain", [], "unauthenticated", NONE),
        ("GET /plain", ["X-Client: acme"], "unauthenticated", NONE),
        ("GET /plain?key=key-of-beta", ["X-Api-Key: wrong"], "unauthenticated", UNKNOWN),
        (
            *("GET /plain", ["X-Api-Key: old-key"], "unauthenticated"),
            "The API key in the X-Api-Key header expired at 2020-01-01.",
        ),
        (
            *("GET /plain", ["X-Api-Key: key-of-acme", "X-Api-Key: other"], "unauthenticated"),
            "The API key in the X-Api-Key header occurs more than once.",
        ),
        (
            *("GET /plain?key=key-of-beta&k%65y=other", [], "unauthenticated"),
            "The API key in the query parameter 'key' occurs more than once.",
        ),
        *(
            ("GET /plain", [f"Authorization: Basic {value}"], "unauthenticated", MALFORMED)
            for value in ("bm9jb2xvbg==", "***", "", "gA==")
        ),
        ("GET /acme", ["X-Api-Key: new-key"], "access_denied", OTHER),
        ("GET /orders", ["X-Api-Key: key-of-acme"], "insufficient_scope", SCOPE),
    ],
)
async def test_a_refusal_names_its_reason(
    program: Program, line: str, fields: list[str], code: str, detail: str
) -> None:
    answer = await get(program, line, *fields)
    assert problem(answer) == (401 if code == "unauthenticated" else 403, code, detail)
    if answer.status == 401:
        assert (await logged(program, answer["x-request-id"]))["cause"] == detail


async def test_a_refusal_names_the_accepted_credentials(program: Program) -> None:
    answer = await get(program, "GET /plain")
    assert answer.all("www-authenticate") == [
        'ApiKey realm="plain", in="header", name="X-Api-Key"',
        'ApiKey realm="plain", in="query"',
        'Basic realm="plain", charset="UTF-8"',
    ]
    assert answer["cache-control"] == "no-store"
    assert {"X-Api-Key", "Authorization"} <= {*answer["vary"].split(", ")}


async def test_a_refusal_has_the_error_shape_of_its_version(program: Program) -> None:
    answer = await get(program, "GET /v2/person")
    assert (answer.status, json.loads(answer.body)) == (401, {"error": "auth", "status": 401})
    assert answer.all("www-authenticate")
    answer = await get(program, "GET /v2/person", "X-Api-Key: new-key")
    assert (answer.status, json.loads(answer.body)) == (403, {"error": "other", "status": 403})


async def test_a_preflight_needs_no_credential(program: Program) -> None:
    asked = ["Origin: https://app.test", "Access-Control-Request-Method: GET"]
    assert (await get(program, "OPTIONS /plain", *asked)).status == 200
    assert (await get(program, "OPTIONS /plain")).status == 401


async def test_a_service_does_not_get_a_credential_without_forward(
    upstream: StartUpstream, configured: StartGateway
) -> None:
    service = await upstream(OK)
    program = configured(CLIENTS + APIS.format(port=service.port))
    fields = ["X-Api-Key: key-of-acme", BASIC, "X_Api_Key: key-of-acme", "X-Other: x"]
    await get(program, "GET /secret?a=1&k%65y=key-of-beta&b=2&key", *fields[:1], fields[2])
    await get(program, "GET /secret?key=key-of-beta")
    await get(program, "GET /secret", fields[1], fields[3])
    await get(program, "GET /plain?key=key-of-beta")
    first, second, third, last = service.requests
    assert first.startswith(b"GET /secret?a=1&b=2 HTTP/1.1\r\n")
    assert second.startswith(b"GET /secret HTTP/1.1\r\n")
    assert b"key-of" not in first + second + third
    assert b"Authorization" not in third
    assert b"X-Other: x" in third
    assert last.startswith(b"GET /plain?key=key-of-beta HTTP/1.1\r\n")


async def test_a_shadow_gets_no_credential_without_forward(
    upstream: StartUpstream, configured: StartGateway
) -> None:
    service, other = await upstream(OK), await upstream(OK)
    program = configured(f"""{CLIENTS}
access: {{ forward: false }}
services:
  s: {{ targets: ["http://127.0.0.1:{service.port}"] }}
  o: {{ targets: ["http://127.0.0.1:{other.port}"] }}
apis:
  person:
    upstream_path: /person
    endpoints: [ {{ path: "/v{{version}}/person", version: {{ in: path }} }} ]
    versions: {{ "1": {{ service: s, shadow: {{ via: "2" }} }}, "2": {{ service: o }} }}
    conversions: [ {{ between: ["1", "2"], changes: [] }} ]
""")
    await get(program, "GET /v1/person?key=key-of-beta&a=1", BASIC)
    await soon(lambda: other.requests)
    for request in (*service.requests, *other.requests):
        assert request.startswith(b"GET /person?a=1 HTTP/1.1\r\n")
        assert b"uthorization" not in request


@pytest.mark.parametrize("access", ["", "access: { forward: false }\n"], ids=["names", "access"])
async def test_no_output_contains_a_key(
    access: str, upstream: StartUpstream, gateway: StartGateway
) -> None:
    service = await upstream(OK)
    tracing = "tracing: { ratio: 1, endpoint: 'http://127.0.0.1:1/' }\n"
    program = gateway(f"""{CLIENTS}{access}{tracing}
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis:
  plain:
    endpoints:
      - {{ path: "/v{{version}}/plain", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/post", version: {{ in: path }}, methods: [POST] }}
    versions: {{ "1": {{ service: s, shadow: {{ via: "2" }} }}, "2": {{ service: s }} }}
    conversions: [ {{ between: ["1", "2"], changes: [] }} ]
""")
    keys = "key-of-acme", "key-of-beta", "key-of-gamma", "wrong-key", "old-key"
    said = ""
    for key in keys:
        for path in ("/v1/plain", "/v1/post", "/none"):
            answer = await get(program, f"GET {path}?key={key}", f"X-Api-Key: {key}", BASIC)
            said += str(answer.fields) + answer.body.decode()
    asked = "'GET /v1/plain?a=1&key=key-of-beta' -H 'X-Api-Key: key-of-acme'"
    explained = run_command(program, f"explain {program.config} {asked}")[1]
    assert "GET /v1/plain?a=1&key=***" in explained
    said += explained
    await get(program, "GET /v1/plain", "X-Request-Id: last")
    await logged(program, "last")
    async with ClientSession(program.admin_url) as session:
        for path in ("/status", "/versions", "/usage", "/metrics", "/"):
            async with session.get(path) as response:
                said += await response.text()
    said += program.output.read_text()
    assert "plain" in said
    assert [key for key in keys if key in said] == []


async def test_a_changed_key_file_takes_effect(
    upstream: StartUpstream, gateway: StartGateway, tmp_path: Path
) -> None:
    service = await upstream(OK)
    keys = tmp_path / "keys.yaml"
    keys.write_text("acme: first\nbeta: [ { key: 12345, expires: 2999-01-01 } ]\n")
    program = gateway(f"""
clients: {{ by: [ {{ api_key: {{ header: X-Api-Key, keys_file: {keys} }} }} ] }}
access: {{}}
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis: {{ plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }} }}
""")

    async def statuses() -> list[int]:
        keys = ("first", "second", "12345")
        return [(await get(program, "GET /plain", f"X-Api-Key: {key}")).status for key in keys]

    assert await statuses() == [200, 401, 200]
    keys.write_text(f"acme: [first, {{ sha256: {sha256(b'second').hexdigest()} }}]")
    while await statuses() != [200, 200, 401]:
        assert not program.log("config_rejected")
        await asyncio.sleep(0.05)
    keys.write_text("acme: { first: second }")
    (rejected,) = await _rejected(program)
    assert "second" not in json.dumps(rejected)
    assert await statuses() == [200, 200, 401]


async def _rejected(program: Program) -> list[dict[str, object]]:
    return await soon(lambda: program.log("config_rejected"))


IDENTITY = [
    *("X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Groups", "X-Auth-Request-User"),
    *("X-Forwarded-Preferred-Username", "X-Forwarded-Access-Token", "X-Forwarded-Client-Cert"),
    *("X-Client-Cert", "Client-Cert", "X-SSL-Client-Verify", "Ssl-Client-Cert", "Remote-User"),
    *("X-Remote-User", "X-Remote-Group", "X-Remote-Extra-Role", "X-Consumer-Username"),
    *("X_Forwarded_User", "x-authenticated-userid", "REMOTE_USER", "X-Auth-Request-Anything"),
]


@pytest.mark.parametrize("trusted", [False, True])
async def test_identity_fields_reach_services_only_from_trusted_proxies(
    trusted: bool, upstream: StartUpstream, reloaded: StartGateway
) -> None:
    service = await upstream(OK)
    proxies = "trusted_proxies: [127.0.0.0/8]\n" if trusted else ""
    program = reloaded(f"""{proxies}
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis: {{ plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }} }}
""")
    await get(program, "GET /plain", *(f"{name}: ann" for name in IDENTITY), "X-User: bob")
    (request,) = service.requests
    lines = {line.partition(b":")[0].decode().lower() for line in request.split(b"\r\n")}
    assert lines & {name.lower() for name in IDENTITY} == (
        {name.lower() for name in IDENTITY} if trusted else set()
    )
    assert "x-user" in lines


async def test_a_token_is_required_with_its_scopes(
    upstream: StartUpstream, gateway: StartGateway
) -> None:
    service, issuer = await upstream(OK), await upstream(_key_set())
    program = gateway(f"""
clients:
  by: [ {{ jwt: {{ jwks: "http://127.0.0.1:{issuer.port}/keys", algorithms: [RS256] }} }} ]
access: {{ scopes: [orders, 'read:all'] }}
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis: {{ plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }} }}
""")

    async def ask(text: str) -> Answer:
        return await get(program, "GET /plain", f"Authorization: Bearer {text}")

    good, some = token(RSA, scope="read:all orders more"), token(RSA, scope="orders")
    assert {(await answer).status for answer in [ask(good) for _ in range(3)]} == {200}
    assert len(issuer.requests) == 1
    answer = await ask(some)
    assert problem(answer) == (
        *(403, "insufficient_scope", "The credential lacks the scope read:all."),
    )
    assert answer["www-authenticate"] == (
        'Bearer realm="plain", error="insufficient_scope", scope="orders read:all"'
    )
    answer = await ask(token(RSA, exp=1))
    assert problem(answer)[2] == "The token in the Authorization header has expired."
    assert answer["www-authenticate"] == (
        'Bearer realm="plain", error="invalid_token",'
        ' error_description="The token in the Authorization header has expired."'
    )
    assert (await get(program, "GET /plain"))["www-authenticate"] == 'Bearer realm="plain"'
    assert (await ask("a" * 9000)).status in (401, 431)
    assert "eyJ" not in program.output.read_text()


async def test_requests_are_refused_while_no_keys_are_known(
    upstream: StartUpstream, gateway: StartGateway
) -> None:
    service = await upstream(OK)
    program = gateway(f"""
clients: {{ by: [ {{ jwt: {{ jwks: "http://127.0.0.1:1/keys", algorithms: [RS256] }} }} ] }}
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis:
  plain: {{ service: s, endpoints: [ {{ path: /plain, access: {{}} }}, {{ path: /open }} ] }}
""")
    answer = await get(program, "GET /plain", f"Authorization: Bearer {token(RSA)}")
    assert problem(answer)[:2] == (503, "keys_unavailable")
    assert 0 < int(answer["retry-after"]) <= 30
    answer = await get(program, "GET /open", f"Authorization: Bearer {token(RSA)}")
    assert answer.status == 200
    (event,) = program.log("keys_not_fetched")
    assert event["url"] == "http://127.0.0.1:1/keys"
    assert "connection failed" in event["reason"]

    await soon(lambda: total(program, "gateway_key_fetches_total"))
    async with ClientSession(program.admin_url) as session, session.get("/") as page:
        assert "No keys are known" in await page.text()


def _key_set() -> bytes:
    body = json.dumps({"keys": [jwk(RSA)]}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def test_a_client_certificate_names_and_authorises_its_client(
    upstream: StartUpstream, gateway: StartGateway, tmp_path: Path
) -> None:
    service = await upstream(OK)
    authority = Authority(tmp_path / "tls")
    for name in ("api", "acme", "beta"):
        authority.write(name, f"{name}.example.com")
    tls = (
        f"certificates: [{{ certificate: {authority.folder}/api.pem,"
        f" key: {authority.folder}/api.key }}],"
        f" client_certificates: {{ ca: {authority.file}, required: false }}"
    )
    program = gateway(f"""
listen: [ {{ address: "127.0.0.1:0", tls: {{ {tls} }} }} ]
clients: {{ by: [ {{ certificate: dns }}, {{ header: X-Client }} ] }}
access: {{ clients: [acme.example.com] }}
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis: {{ plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }} }}
""")
    statuses = {}
    for name in ("acme", "beta", ""):
        request = b"GET /plain HTTP/1.1\r\nHost: a\r\nX-Client: acme.example.com\r\n"
        context = client(authority, name)
        answer = await ask_tls(program, context, request + b"Connection: close\r\n\r\n")
        statuses[name] = int(answer.split(b" ")[1])
        if name == "acme":
            assert b"Vary: *" in answer
    assert statuses == {"acme": 200, "beta": 403, "": 401}
    names = [
        line.get("client")
        for line in await soon(lambda: program.log("request")[2:] and program.log("request"))
    ]
    assert names == ["acme.example.com", "beta.example.com", "unverified:acme.example.com"]
