"""A configuration for tests, and functions that edit it and return the reported mistakes."""

from pathlib import Path

import pytest

from gateway.base.mistakes import ConfigError
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import load

RULES = """\
services:
  old: { targets: ["http://127.0.0.1:8001"] }
  new: { targets: ["http://127.0.0.1:8002"] }
apis:
  person:
    upstream_path: /person
    endpoints:
      - { path: "/v{version}/person", version: { in: path } }
      - { path: /param, version: { in: query, name: version } }
      - { path: /header, version: { in: header, name: X-API-VERSION } }
      - { path: /accept, version: { in: accept, media_type: "a/b-v{version}+json" } }
    versions:
      "1": { service: old }
      "2": { service: new }
    conversions:
      - between: ["1", "2"]
        changes:
          - join: { fields: [name.first, name.last], into: name }
  users:
    service: old
    endpoints:
      - { path: /users, methods: [POST] }
"""


def edited(old: str, new: str, text: str = RULES) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def loaded(text: str, **environment: str) -> Snapshot:
    return load(text.encode(), "gateway.yaml", environment)


def report(text: str | bytes, **environment: str) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    with pytest.raises(ConfigError) as caught:
        load(content, "gateway.yaml", environment, Path(__file__).parent)
    lines = str(caught.value).splitlines()
    assert all(line.startswith("gateway.yaml:") for line in lines)
    return [line.removeprefix("gateway.yaml:") for line in lines]
