"""Conflicts between conversions that are limited to endpoints, methods or operations."""

import pytest

from gateway.base.mistakes import ConfigError
from gateway.rules.load import load

RULES = """
services: { s: { targets: ["http://127.0.0.1:1"] } }
apis:
  fair:
    endpoints:
      - { path: "/v{version}/programme", version: { in: path }, upstream_path: /programme }
      - path: "/v{version}/programme/{id}"
        version: { in: path }
        upstream_path: "/programme/{id}"
      - path: "/v{version}/programme/archive"
        version: { in: path }
        upstream_path: /programme/archive
      - path: "/v{version}/stands/{rest*}"
        version: { in: path }
        upstream_path: "/stands/{rest}"
    versions: { "1": { service: s }, "2": { service: s }, "3": { service: s } }
    conversions:
"""
PROGRAMME = 'paths: ["/v{version}/programme"]'
ONE = 'paths: ["/v{version}/programme/{id}"]'
ARCHIVE = 'paths: ["/v{version}/programme/archive"]'
STANDS = 'paths: ["/v{version}/stands/{rest*}"]'
RENAME = "changes: [ rename: { field: a, to: b } ]"


def clashes(*parts: str) -> list[str]:
    said = [part if "between" in part else f'between: ["1", "2"], {part}' for part in parts]
    listed = "".join(f"      - {{ {part} }}\n" for part in said)
    try:
        load((RULES + listed).encode(), "gateway.yaml", {})
    except ConfigError as error:
        return [issue.text for issue in error.issues]
    return []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PROGRAMME, "operations: [GET /tickets]"),
        (PROGRAMME, 'operations: ["GET /programme/{id}"]'),
        (PROGRAMME, 'operations: ["/{first}/programme"]'),
        (PROGRAMME, 'operations: ["/programme/{rest*}"]'),
        # The endpoint with more literal text takes precedence.
        (ONE, "operations: [GET /programme/archive]"),
        (ONE, 'operations: ["GET /programme/arch{x}/more"]'),
        (f"{PROGRAMME}, methods: [POST]", "operations: [GET /programme]"),
        ("methods: [POST]", "operations: [GET /programme]"),
        (STANDS, 'operations: ["GET /stand/{id}"]'),
    ],
)
def test_conversions_of_different_requests_do_not_conflict(one: str, other: str) -> None:
    assert clashes(f"{one}, {RENAME}", f"{other}, {RENAME}") == []
    assert clashes(f"{other}, {RENAME}", f"{one}, {RENAME}") == []


def test_an_operation_with_precedence_at_a_path_prevents_a_conflict_with_a_wider_one() -> None:
    archive = "operations: [GET /programme/archive], changes: []"
    part = f"{ARCHIVE}, methods: [GET], {RENAME}"
    wide = f'operations: ["GET /programme/{{id}}"], {RENAME}'
    assert clashes(part, archive, wide) == []
    text, *_ = clashes(part, wide)
    assert "is removed by" in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PROGRAMME, "operations: [GET /programme]"),
        (PROGRAMME, 'operations: ["/{name}"]'),
        (ONE, 'operations: ["GET /programme/{id}"]'),
        (ONE, 'operations: ["GET /programme/p-{id}"]'),
        (ARCHIVE, 'operations: ["GET /programme/{id}"]'),
        (PROGRAMME, "operations: [{ newer: GET /shows, older: GET /programme }]"),
        (PROGRAMME, "operations: [{ newer: GET /programme, older: GET /plan }]"),
        (PROGRAMME, 'operations: [{ newer: GET /shows, older: "GET /programme?all=yes" }]'),
        (STANDS, 'operations: ["GET /stands/{id}/visits"]'),
        (STANDS, 'operations: ["GET /stands/{some*}"]'),
        (f"{PROGRAMME}, methods: [HEAD]", "operations: [GET /programme]"),
        (f"{PROGRAMME}, methods: [PUT]", "operations: [/programme]"),
        ("methods: [PATCH]", "operations: [{ newer: PATCH /a, older: PUT /a }]"),
        ("methods: [PUT]", "operations: [{ newer: PATCH /a, older: PUT /a }]"),
        ("on: both", "operations: [GET /programme]"),
    ],
)
def test_conflicting_conversions_of_the_same_requests_are_reported(one: str, other: str) -> None:
    for parts in ((one, other), (other, one)):
        text, *_ = clashes(*(f"{part}, {RENAME}" for part in parts))
        assert "'b' is removed by" in text


def test_an_operation_renamed_in_another_version_step_still_belongs_to_its_endpoint() -> None:
    moved = "operations: [{ newer: GET /shows, older: GET /programme }], changes: []"
    later = 'between: ["2", "3"], '
    shows = f"{later}operations: [GET /shows], {RENAME}"
    here = f"{later}{PROGRAMME}, {RENAME}"
    assert clashes(here, shows) == []
    text, *_ = clashes(moved, here, shows)
    assert "'b' is removed by" in text
    lacked = "operations: [{ older: GET /programme, refuse: {} }], changes: []"
    assert clashes(lacked, here, shows) == []
