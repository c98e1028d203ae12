"""Configurations of the gateway for the benchmark."""

import json

from benchmarks.systems import ROOT

SERVICES = 'services: { backend: { targets: ["http://${BACKEND}"] } }\n'
PARTS = ("name", "home", "work", "car", "pet")
"""The fields that the conversions of `chain` join, one per conversion."""
DOCUMENT = json.dumps({part: {"a": "Bob", "b": "Charlie"} for part in PARTS}, separators=(",", ":"))
"""The document of the newest version of `chain`."""

BULK = f"""{SERVICES}
apis:
  bulk: {{ service: backend, endpoints: [ {{ path: "/bytes/{{count}}" }} ] }}
"""
"""Forwards large bodies unchanged."""

PEOPLE = f"""{SERVICES}
apis:
  people:
    endpoints: [ {{ path: "/v{{version}}/people", version: {{ in: path }} }} ]
    upstream_path: /people
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: backend }} }}
    conversions:
      - between: ["1", "2"]
        changes: [ {{ join: {{ fields: [name.firstName, name.lastName], into: name }} }} ]
  small: {{ service: backend, endpoints: [ {{ path: /small }} ] }}
"""
"""Converts version 1 of a large array from version 2; /small is forwarded unchanged."""


LENS = f"""{SERVICES.replace("${BACKEND}", "127.0.0.1:1")}
apis:
  orders:
    endpoints: [ {{ path: "/v{{version}}/orders", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: backend }} }}
    conversions:
      - between: ["1", "2"]
        changes:
          - rename: {{ field: createdAt, to: created }}
          - map: {{ field: state, values: {{ OPEN: open, PAID: paid, SENT: sent }} }}
          - type: {{ field: total, newer: integer, older: text, scale: 2 }}
          - join: {{ fields: [customer.first, customer.last], into: customer }}
          - default: {{ field: channel, value: web }}
"""
"""Five changes between two versions of an order."""


def shipped() -> str:
    """Return the shipped gateway.yaml."""
    return (ROOT / "gateway.yaml").read_text()


def stateless() -> str:
    """Return the shipped gateway.yaml with the state only in memory."""
    lines = shipped().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("state:"))


def converted() -> str:
    """Return gateway.yaml with version 1 served from version 2."""
    return shipped().replace('"1": { service: person_v1 }', '"1": { via: "2" }')


def shadowed() -> str:
    """Return gateway.yaml with a shadow that compares all responses of version 1 with version 2."""
    beside = '"1": { service: person_v1, shadow: { via: "2" } }'
    return shipped().replace('"1": { service: person_v1 }', beside)


def ending() -> str:
    """Return gateway.yaml with client names, and with a deprecation and brownouts of version 2."""
    ends = """"2":
        service: person_v2
        lifecycle: { deprecated: 2026-01-01, sunset: 2098-12-31, link: "https://example.com/ends" }
        brownout: { windows: [{ at: "0 9 * * 1", minutes: 10, from: 2098-01-01 }] }
"""
    named = "version_header: X-Version\nclients: { by: [{ header: X-Client }] }\n"
    return named + shipped().replace('"2": { service: person_v2 }', ends)


def house(apis: int, resources: int, versions: int) -> str:
    """Return `apis` APIs with `versions` versions and `4 × resources` routes each."""
    text = [SERVICES, "apis:\n"]
    known = ", ".join(f'"{number}": {{ service: backend }}' for number in range(1, versions + 1))
    for api in range(apis):
        text.append(f"  api{api}:\n    upstream_path: /person\n    versions: {{ {known} }}\n")
        text.append("    endpoints:\n")
        text += (_routes(f"api{api}/resource{resource}") for resource in range(resources))
    return "".join(text)


def _routes(path: str) -> str:
    media_type = '"application/vnd.house-v{version}+json", response_type: vendor'
    return f"""\
      - {{ path: "/v{{version}}/{path}", version: {{ in: path }} }}
      - {{ path: "/{path}/param", version: {{ in: query, name: version }} }}
      - {{ path: "/{path}/header", version: {{ in: header, name: X-API-VERSION }} }}
      - {{ path: "/{path}/accept", version: {{ in: accept, media_type: {media_type} }} }}
"""


def chain() -> str:
    """Return six versions that the newest one serves; each conversion joins another field."""
    newest = len(PARTS) + 1
    older = "".join(f'"{number}": {{ via: "{newest}" }}, ' for number in range(1, newest))
    steps = "".join(
        f'      - between: ["{number}", "{number + 1}"]\n'
        f"        changes: [ {{ join: {{ fields: [{part}.a, {part}.b], into: {part} }} }} ]\n"
        for number, part in enumerate(PARTS, 1)
    )
    return f"""{SERVICES}
apis:
  chain:
    upstream_path: /chain
    endpoints: [ {{ path: "/v{{version}}/chain", version: {{ in: path }} }} ]
    versions: {{ {older}"{newest}": {{ service: backend }} }}
    conversions:
{steps}"""
