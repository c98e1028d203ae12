"""A configuration for tests of `export`."""

from gateway.routing.snapshot import Snapshot
from tests.gateway.rules.rules import loaded

RULES = """\
services:
  one: { targets: ["http://one.shop:8001"] }
  two: { targets: ["http://two:8002", "http://two-b:8003"], timeouts: { whole: 90.5 } }
apis:
  person:
    upstream_path: /person
    version_header: X-Served
    endpoints:
      - { path: "/v{version}/person", version: { in: path }, methods: [GET] }
      - { path: /query, version: { in: query, name: version }, methods: [GET, POST] }
      - { path: /header, version: { in: header, name: X-API-VERSION }, methods: [GET] }
      - { path: /accept, version: { in: accept, media_type: "a/b-v{version}+json" } }
      - { path: /host, version: { in: host, name: "v{version}.example.com" }, methods: [GET] }
      - path: /two
        version: [{ in: header, name: X-API-VERSION }, { in: query, name: version }]
    versions:
      "1": { via: "2" }
      "2": { service: two }
      "3": { service: one }
      "4": { service: one, lifecycle: { deprecated: 2025-01-01 } }
    conversions:
      - between: ["1", "2"]
        changes: [{ rename: { field: name, to: title } }]
      - { between: ["2", "3"], changes: [{ rename: { field: title, to: called } }] }
      - { between: ["3", "4"], changes: [{ rename: { field: called, to: caption } }] }
  users:
    service: one
    endpoints:
      - { path: /users, methods: [POST] }
      - { path: "/users/{id}", methods: [GET] }
      - { path: /users/me, methods: [GET] }
"""


def rules(old: str = "", new: str = "") -> Snapshot:
    assert not old or old in RULES
    return loaded(RULES.replace(old, new, 1) if old else RULES)
