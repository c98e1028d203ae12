"""Mistakes in `writes`, and the losses that it allows."""

import pytest

from gateway.base.mistakes import ConfigError
from gateway.rules.load import load

RULES = """
services: { s: { targets: ["http://127.0.0.1:9"] } }
apis:
  orders:
    endpoints: [ { path: "/v{version}/orders/{id}", version: { in: path } } ]
    versions: { "1": { via: "2" }, "2": { service: s } }
    conversions: [ { between: ["1", "2"], WRITES, changes: [ CHANGE ] } ]
"""
DEFAULT = "default: { field: channel, value: web }"


@pytest.mark.parametrize(
    ("writes", "mistake"),
    [
        ("writes: none", "writes"),
        ("writes: { key: { 'prices.*.list': id } }", "the wildcard *; name each list"),
        ("writes: { key: { lines: 'a[].id' } }", "is not a field of the element"),
        ("writes: { key: { lines: [] } }", "key"),
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


@pytest.mark.parametrize("place", ["writes: merge", "operations: [ OPERATION ]"])
def test_writes_cannot_be_merged_together_with_changes_of_other_parts(place: str) -> None:
    path = '"PUT /v{version}/orders/{id}"'
    operation = f"{{ newer: {path}, older: {path}, writes: merge }}"
    text = RULES.replace("WRITES", place.replace("OPERATION", operation))
    text = text.replace("CHANGE", "to_header: { field: total, header: X-Total }")
    with pytest.raises(ConfigError, match="move these changes to an entry for other operations"):
        load(text.encode(), "gateway.yaml", {})


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
