"""Mistakes in `writes`, and the losses that it allows."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from gateway.base.mistakes import ConfigError
from gateway.rules.checks.conversions import check_conversions
from gateway.rules.load import load, load_file

RULES = """
services: { s: { targets: ["http://127.0.0.1:9"] } }
apis:
  orders:
    endpoints: [ { path: "/v{version}/orders/{id}", version: { in: path } } ]
    versions: { "1": { via: "2" }, "2": { service: s } }
    conversions: [ { between: ["1", "2"], WRITES, changes: [ CHANGE ] } ]
"""
DOCUMENT = {"openapi": "3.1.0", "paths": {"/v2/orders/{id}": {"put": {"responses": {}}}}}
DEFAULT = "default: { field: channel, value: web }"


@pytest.mark.parametrize(
    ("writes", "mistake"),
    [
        ("writes: none", "writes"),
        ("writes: { key: { 'prices.*.list': id } }", "the wildcard *; name each list"),
        ("writes: { key: { lines: 'a[].id' } }", "is not a field of the element"),
        ("writes: { key: { lines: { a: b } } }", "key"),
        ("writes: { read: 'POST /all/{id}' }", "not GET and a path"),
        ("writes: { read: 'GET /all/{id}?a=b' }", "not GET and a path"),
        ("writes: { read: 'GET /all/{ix}' }", "no path captures 'ix'"),
        ("writes: { without_tag: maybe }", "without_tag"),
    ],
)
def test_a_mistake_in_writes_is_reported(writes: str, mistake: str) -> None:
    text = RULES.replace("WRITES", writes).replace("CHANGE", DEFAULT)
    with pytest.raises(ConfigError, match=mistake.replace("*", ".")):
        load(text.encode(), "gateway.yaml", {})


MOVES = [
    "to_header: { field: total, header: X-Total }",
    "from_header: { field: total, header: X-Total }",
    "to_query: { field: total, parameter: total }",
    "from_query: { field: total, parameter: total }",
    "spread: { field: order, into: 'lines[].order', capture: id }",
]


@pytest.mark.parametrize("place", ["writes: merge", "operations: [ OPERATION ]"])
@pytest.mark.parametrize("change", MOVES)
def test_a_change_of_more_than_the_body_is_refused_where_writes_are_merged(
    change: str, place: str
) -> None:
    path = '"PUT /v{version}/orders/{id}"'
    operation = f"{{ newer: {path}, older: {path}, writes: merge }}"
    text = RULES.replace("WRITES", place.replace("OPERATION", operation)).replace("CHANGE", change)
    name = change.partition(":")[0]
    refusal = rf"changes\[0\].{name}: writes cannot be merged with this change: only bodies .* move"
    with pytest.raises(ConfigError, match=refusal):
        load(text.encode(), "gateway.yaml", {})


@pytest.mark.parametrize("change", MOVES)
def test_a_change_of_more_than_the_body_in_another_entry_is_refused_by_check(
    change: str, tmp_path: Path
) -> None:
    """It is no mistake in an entry that does not apply to the writes and their reads."""
    entry = f'{{ between: ["1", "2"], METHODS changes: [ {change} ] }}'
    path = tmp_path / "gateway.yaml"
    for methods, refused in (("", True), ("methods: [POST],", False)):
        text = RULES.replace("WRITES", "writes: merge").replace("CHANGE", DEFAULT)
        text = text.replace(" ] } ]\n", f" ] }}, {entry.replace('METHODS', methods)} ]\n")
        path.write_text(text)
        snapshot = load_file(path, {})
        with (
            pytest.raises(ConfigError, match=r"conversions\[1\].changes\[0\]")
            if refused
            else nullcontext()
        ):
            check_conversions(path, {}, snapshot)


@pytest.mark.parametrize("key", ["lines", "'lines[]'", "'[]'", "'orders[].lines'"])
def test_lists_are_named_like_the_fields_of_changes(key: str) -> None:
    writes = f"writes: {{ key: {{ {key}: [id, detail.size] }} }}"
    text = RULES.replace("WRITES", writes).replace("CHANGE", DEFAULT)
    snapshot = load(text.encode(), "gateway.yaml", {})
    (link,) = next(iter(snapshot.apis[0].links.values()))
    assert link.writes is not None
    ((place, keys),) = link.writes.keys.items()
    assert place in ((), ("lines",), ("orders", 0, "lines"))
    assert keys == (("id",), ("detail", "size"))


@pytest.mark.parametrize(
    ("place", "reads"), [("writes: merge", True), ("OPERATION", True), ("", False)]
)
def test_the_document_of_the_service_is_used_where_writes_are_merged(
    place: str, reads: bool, tmp_path: Path
) -> None:
    """The gateway removes what this document calls `readOnly` from merged writes."""
    path = '"PUT /v{version}/orders/{id}"'
    operation = f"operations: [ {{ newer: {path}, older: {path}, writes: merge }} ]"
    text = RULES.replace(" WRITES,", f" {place.replace('OPERATION', operation)}," if place else "")
    text = text.replace("{ service: s }", "{ service: s, schema: orders.json }")
    (tmp_path / "orders.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "gateway.yaml").write_text(text.replace("CHANGE", DEFAULT))
    (endpoint,) = load_file(tmp_path / "gateway.yaml", {}).apis[0].endpoints
    written = {
        str(version): route.written is not None for version, route in endpoint.routes.items()
    }
    assert written == {"1": reads, "2": False}
