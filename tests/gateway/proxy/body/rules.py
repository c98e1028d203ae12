"""A conversion with several kinds of changes, for the tests of body formats."""

from pathlib import Path

from gateway.conversion.chain import BodyConversion
from gateway.rules.load import load

RULES = """
services: { a: { targets: ["http://localhost:1"] } }
apis:
  a:
    versions: { "2": { service: a }, "1": { via: "2" } }
    endpoints: [ { path: "/v{version}/a", version: { in: path } } ]
    conversions:
      - between: ["1", "2"]
        changes:
          - rename: { field: name, to: title }
          - rename: { field: customer.mail, to: email }
          - rename: { field: "lines[].price", to: "lines[].amount" }
          - type: { field: size, newer: number, older: text }
          - type: { field: cents, newer: integer, older: text, scale: 2 }
          - map: { field: state, values: { OPEN: 1, DONE: 2 } }
          - map: { field: kind, values: [ { newer: A, older: true }, { newer: B, older: false } ] }
          - invert: { field: active, to: archived }
          - join: { fields: [first, last], into: full }
          - default: { field: channel, value: web }
          - default: { field: tries, value: 3 }
"""


def conversion(method: str = "POST") -> BodyConversion:
    (endpoint,) = load(RULES.encode(), "gateway.yaml", {}, Path()).router
    for route in endpoint.routes.values():
        if route.request is not None:
            made = route.request.for_request(method)
            assert made is not None
            return made
    raise AssertionError("nothing is converted")
