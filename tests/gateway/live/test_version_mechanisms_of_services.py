"""The service gets the selected version in the mechanism that it reads."""

import asyncio

import pytest

from tests.gateway.kit import DEADLINE, Program, StartGateway, StartUpstream
from tests.gateway.talk import ask, connect

RULES = """
services:
  both: {{ targets: ["http://127.0.0.1:{port}"] }}
  one: {{ targets: ["http://127.0.0.1:{port}"] }}
  pinned: {{ targets: ["http://127.0.0.1:{port}"] }}
  deaf: {{ targets: ["http://127.0.0.1:{port}"], reads_version: false }}
  eager: {{ targets: ["http://127.0.0.1:{port}"], reads_version: true }}
clients: {{ by: [ {{ header: X-Client }} ] }}
apis:
  converted:
    version_format: date
    pins: {{ acme: 2022-11-15 }}
    default_version: 2022-11-15
    endpoints:
      - {{ path: "/v1/{{rest*}}", version: {{ in: header, name: Stripe-Version }} }}
      - {{ path: "/q/{{rest*}}", version: {{ in: query, name: api-version }} }}
      - path: "/a/{{rest*}}"
        version: {{ in: accept, media_type: "application/vnd.t.{{version}}+json" }}
      - path: "/l/{{rest*}}"
        version:
          - {{ in: accept, media_type: "application/vnd.t.{{version}}+json" }}
          - {{ in: query, name: api-version }}
          - {{ in: header, name: Stripe-Version }}
    versions: {{ 2022-11-15: {{ via: 2026-08-26 }}, 2026-08-26: {{ service: both }} }}
    conversions:
      - between: [2022-11-15, 2026-08-26]
        on: responses
        changes: [ {{ rename: {{ field: b, to: body }} }} ]
  native:
    default_version: "2"
    aliases: {{ latest: "2" }}
    match: nearest_lower
    endpoints:
      - {{ path: "/n/h/{{rest*}}", version: {{ in: header, name: V }} }}
      - {{ path: "/n/q", version: {{ in: query, name: v }} }}
      - {{ path: "/n/p/{{version}}", version: {{ in: path }} }}
      - path: "/n/c"
        version: {{ in: content_type, media_type: "application/vnd.t.v{{version}}+json" }}
      - path: "/n/a"
        version: {{ in: accept, media_type: "application/vnd.t.v{{version}}+json" }}
    versions: {{ "1": {{ service: both }}, "2": {{ service: both }} }}
  deaf:
    default_version: "1"
    aliases: {{ latest: "1" }}
    endpoints: [ {{ path: "/deaf/{{rest*}}", version: {{ in: header, name: V }} }} ]
    versions: {{ "1": {{ service: deaf }}, "2": {{ via: "1" }} }}
    conversions: [ {{ between: ["1", "2"], changes: [ {{ rename: {{ field: a, to: b }} }} ] }} ]
  one:
    default_version: "1"
    aliases: {{ latest: "1" }}
    endpoints:
      - {{ path: "/one/h", version: {{ in: header, name: V }} }}
      - {{ path: "/one/p/{{version}}", version: {{ in: path }} }}
    versions: {{ "1": {{ service: one }} }}
  pinned:
    pins: {{ acme: "1" }}
    endpoints: [ {{ path: /pinned, version: {{ in: header, name: V }} }} ]
    versions: {{ "1": {{ service: pinned }} }}
  eager:
    default_version: "1"
    endpoints: [ {{ path: /eager, version: {{ in: header, name: V }} }} ]
    versions: {{ "1": {{ service: eager }} }}
  unversioned: {{ service: both, endpoints: [ {{ path: /plain }} ] }}
"""
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
NEW = "2026-08-26"
LATEST = "Accept: application/vnd.t.vlatest+json"
BODY = "Content-Type: application/vnd.t.v{}+json"
DATED = "Content-Type: application/vnd.t.{}+json"
JSON = "Content-Type: application/json"
VENDOR = "Accept: application/vnd.t.{}+json"

# The client's target and fields, and the target and version fields that the service gets.
TOLD: dict[str, tuple[str, list[str], str, list[str]]] = {
    "default": ("/v1/x", [], "/v1/x", [f"Stripe-Version: {NEW}"]),
    "pin": ("/v1/x", ["X-Client: acme"], "/v1/x", [f"Stripe-Version: {NEW}"]),
    "named and converted": (
        "/v1/x",
        ["stripe-version: 2022-11-15"],
        "/v1/x",
        [f"stripe-version: {NEW}"],
    ),
    "named in the served form": (
        "/v1/x",
        [f"STRIPE-version: {NEW}"],
        "/v1/x",
        [f"STRIPE-version: {NEW}"],
    ),
    "default in the query": ("/q/x", [], f"/q/x?api-version={NEW}", []),
    "behind other parameters": ("/q/x?a=%20&b", [], f"/q/x?a=%20&b&api-version={NEW}", []),
    "in an empty query": ("/q/x?", [], f"/q/x?api-version={NEW}", []),
    "replaced in the query": ("/q/x?api-version=2022-11-15&a", [], f"/q/x?api-version={NEW}&a", []),
    "coded in the query": (
        "/q/x?%61pi-version=2026%2D08-26&a=%20",
        [],
        "/q/x?%61pi-version=2026%2D08-26&a=%20",
        [],
    ),
    "no Accept is invented": ("/a/x", [], "/a/x", []),
    "no vendor type is invented": (
        "/a/x",
        ["Accept: application/json"],
        "/a/x",
        ["Accept: application/json"],
    ),
    "a vendor type is replaced": (
        "/a/x",
        [VENDOR.format("2022-11-15")],
        "/a/x",
        [VENDOR.format(NEW)],
    ),
    "at the first place that can be written": ("/l/x", [], f"/l/x?api-version={NEW}", []),
    "where the client named it": (
        "/l/x",
        ["Stripe-Version: 2022-11-15"],
        "/l/x",
        [f"Stripe-Version: {NEW}"],
    ),
    "at each place": (
        "/l/x?api-version=2022-11-15",
        [VENDOR.format("2022-11-15")],
        f"/l/x?api-version={NEW}",
        [VENDOR.format(NEW)],
    ),
    "native default": ("/n/h/x", [], "/n/h/x", ["V: 2"]),
    "native alias": ("/n/h/x", ["V: latest"], "/n/h/x", ["V: 2"]),
    "native nearest": ("/n/q?v=7", [], "/n/q?v=2", []),
    "native alias in the path": ("/n/p/latest", [], "/n/p/2", []),
    "native label": ("/n/q?v=%31", [], "/n/q?v=%31", []),
    "a preferred type": (
        "/n/a",
        ["Accept: application/VND.t.v2+json, application/vnd.t.v1+json;q=0.5"],
        "/n/a",
        ["Accept: application/VND.t.v2+json, application/vnd.t.v1+json;q=0.5"],
    ),
    "a refused type beside the alias": (
        "/n/a",
        [f'{LATEST}, application/vnd.t.v1+json; x=","; q=0.0, application/vnd.t.v3+json;Q=0'],
        "/n/a",
        [
            LATEST.replace("latest", "2")
            + ', application/vnd.t.v1+json; x=","; q=0.0, application/vnd.t.v3+json;Q=0'
        ],
    ),
    "a refused type beside the default": (
        "/n/a",
        ["Accept: */*, application/vnd.t.v1+json;q=0"],
        "/n/a",
        ["Accept: */*, application/vnd.t.v1+json;q=0"],
    ),
    "a body of another version, default": ("/n/a", [BODY.format(1)], "/n/a", [BODY.format(1)]),
    "a body of a later version, default": ("/n/a", [BODY.format(9)], "/n/a", [BODY.format(2)]),
    "a body of another version, alias": (
        "/n/a",
        [LATEST, BODY.format(1)],
        "/n/a",
        ["Accept: application/vnd.t.v2+json", BODY.format(1)],
    ),
    "a body of the alias": ("/n/c", [BODY.format("latest")], "/n/c", [BODY.format(2)]),
    "a body of the default": ("/n/a", [BODY.format("LATEST")], "/n/a", [BODY.format(2)]),
    "a converted body": ("/a/x", [DATED.format("2022-11-15")], "/a/x", [DATED.format(NEW)]),
    "a body of the served version": ("/a/x", [DATED.format(NEW)], "/a/x", [DATED.format(NEW)]),
    "a body of another type": ("/a/x", [JSON], "/a/x", [JSON]),
    "reads_version: false, converted": ("/deaf/x", ["V: 2"], "/deaf/x", ["V: 2"]),
    "reads_version: false, default": ("/deaf/x", [], "/deaf/x", []),
    "reads_version: false, alias": ("/deaf/x", ["V: latest"], "/deaf/x", ["V: latest"]),
    "a service of one version": ("/one/h", [], "/one/h", []),
    "an alias for one version": ("/one/h", ["V: latest"], "/one/h", ["V: latest"]),
    "an alias in the path of one version": ("/one/p/latest", [], "/one/p/1", []),
    "a pin to one version": ("/pinned", ["X-Client: acme"], "/pinned", ["V: 1"]),
    "reads_version: true": ("/eager", [], "/eager", ["V: 1"]),
    "an API without versions": ("/plain?v=7", ["V: 7"], "/plain?v=7", ["V: 7"]),
}


async def test_a_service_gets_the_selected_version(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(ANSWER)
    gateway = reloaded(RULES.format(port=service.port))
    async with connect(gateway) as client:
        for case, (target, fields, asked, told) in TOLD.items():
            method, sent, body = "GET", fields, b""
            if fields and fields[-1].startswith("Content-Type"):
                method, sent, body = "POST", [*fields, "Content-Length: 2"], b"{}"
            client.send(ask(f"{method} {target}", *sent, body=body))
            assert (await client.answer()).status == 200, case
            line, *lines = service.requests[-1].decode().split("\r\n")
            assert line == f"{method} {asked} HTTP/1.1", case
            names = ("v:", "stripe-version:", "accept:", "content-type:")
            assert [each for each in lines if each.lower().startswith(names)] == told, case


OTHER = """
services:
  old: {{ targets: ["http://127.0.0.1:{old}"] }}
  new: {{ targets: ["http://127.0.0.1:{new}"] }}
apis:
  t:
    default_version: "1"
    endpoints: [ {{ path: /t, version: {{ in: header, name: V }} }} ]
    versions: {{ "1": {{ service: old, {beside} }}, "2": {{ service: new }} }}
    conversions: [ {{ between: ["1", "2"], changes: [ {{ rename: {{ field: a, to: b }} }} ] }} ]
"""


@pytest.mark.parametrize(
    "beside",
    ['shadow: {{ via: "2" }}', 'cutover: {{ via: "2", percent: 100, sticky_by: request }}'],
    ids=["shadow", "cutover"],
)
@pytest.mark.parametrize("fields", [(), ("V: 1",)], ids=["default", "named"])
async def test_the_service_of_a_shadow_or_cutover_gets_its_own_version(
    standing: Program, upstream: StartUpstream, beside: str, fields: tuple[str, ...]
) -> None:
    old, new = await upstream(ANSWER), await upstream(ANSWER)
    rules = OTHER.format(old=old.port, new=new.port, beside=beside.format())
    standing.reload(rules)
    async with connect(standing) as client, asyncio.timeout(DEADLINE):
        while not new.requests:  # shadows may be dropped on a busy machine
            client.send(ask("GET /t", *fields))
            assert (await client.answer()).status == 200
            await asyncio.sleep(0.05)
    assert all(b"V: 2\r\n" in request for request in new.requests)
    assert all((b"\r\nV: 1\r\n" in request) == bool(fields) for request in old.requests)
