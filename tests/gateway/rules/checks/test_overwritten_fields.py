"""`check` warns about a change exactly if reading a resource and writing it back loses a value."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.base.mistakes import Mistakes
from gateway.conversion.chain import BodyConversion
from gateway.conversion.changes.change_section import BodySection, BuildContext
from gateway.conversion.changes.registry import ChangeConfig
from gateway.conversion.changes.rename import rename
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body
from gateway.conversion.message import Message, QueryWalk
from gateway.conversion.version_step import Direction, VersionLink
from gateway.rules.checks.conversions import check_conversions
from gateway.rules.document import read
from gateway.rules.load import load_file
from gateway.versions.version import Version

RULES = """\
services: {{ orders: {{ targets: ["http://127.0.0.1:9"] }} }}
apis:
  orders:
    endpoints:
      - {{ path: "/v{{version}}/orders/{{id}}", version: {{ in: path }} }}
    versions: {versions}
    groups: {{ item: [ rename: {{ field: name, to: title }} ] }}
    conversions:
      - between: ["1", "2"]
        changes: [ {change} ]
"""
NEWER = '{ "1": { via: "2" }, "2": { service: orders } }'
OLDER = '{ "1": { service: orders }, "2": { via: "1" } }'
GROUPS = {"item": (rename((), ("name",), ("title",)),)}

# For each change: resources of a service of the newer version, and of the older version.
TABLE: list[tuple[str, list[Any], list[Any]]] = [
    ("rename: { field: p, to: t }", [{"p": 1}, {}], [{"t": 1}, {}]),
    ('rename: { field: p, to: t, default: "" }', [{"p": 1}, {}], [{"t": 1}, {}]),
    ("map: { field: s, values: { A: x, B: y } }", [{"s": "A"}], [{"s": "x"}]),
    (
        "map: { field: s, values: { A: x, B: y }, default: { older: y } }",
        [{"s": "A"}, {"s": "C"}],
        [{"s": "x"}, {"s": "y"}],
    ),
    ("type: { field: s, newer: number, older: text }", [{"s": 1.5}], [{"s": "1.50"}]),
    ("multiply: { field: w, by: 60 }", [{"w": 15}], [{"w": 900}]),
    (
        "multiply: { field: w, by: 1000, digits: { older: 0 }, inexact: round }",
        [{"w": 1.23456}],
        [{"w": 1234}],
    ),
    ("divide: { field: w, by: 60, digits: { older: 0 }, inexact: round }", [{"w": 9}], [{"w": 1}]),
    ("round: { field: r, digits: 2 }", [{"r": 0.256}], [{"r": 0.25}]),
    ("time: { field: t, newer: unix_ms, older: unix }", [{"t": 1123}], [{"t": 1}]),
    ("time: { field: t, newer: unix, older: unix_ms }", [{"t": 1}], [{"t": 1123}]),
    (
        "time: { field: t, newer: rfc3339, older: unix_ms }",
        [{"t": "2023-11-14T23:13:20+01:00"}],
        [{"t": 1700000000123}],
    ),
    ("time: { field: d, newer: yyyy-MM-dd, older: dd/MM/yyyy }", [{"d": "2026-12-31"}], []),
    (
        "money: { field: t, currency: c, newer: integer, older: text }",
        [{"t": 1250, "c": "EUR"}],
        [{"t": "12.50", "c": "EUR"}],
    ),
    (
        'affix: { field: i, newer: { prefix: c_ }, older: { prefix: "#" } }',
        [{"i": "c_7"}],
        [{"i": "#7"}],
    ),
    ("invert: { field: a, to: b }", [{"a": True}, {}], [{"b": True}]),
    ("case: { field: s, newer: camel, older: upper_snake }", [{"s": "inA"}], [{"s": "IN_A"}]),
    (
        "case: { field: s, newer: camel, older: upper_snake, unknown: keep }",
        [{"s": "IN_A"}],
        [{"s": "inA"}],
    ),
    ("key_case: { newer: camel, older: snake }", [{"aB": 1}], [{"a_b": 1}]),
    ("key_case: { newer: camel, older: snake, unknown: keep }", [{"a_b": 1}], [{"aB": 1}]),
    ("keys: { field: p, values: { EUR: euro } }", [{"p": {"EUR": 1}}], [{"p": {"euro": 1}}]),
    (
        "entries: { field: f, key: name, value: n }",
        [{"f": {"a": 1}}],
        [{"f": [{"name": "a", "n": 1, "x": 2}]}, {"f": [{"name": "a", "n": 1}]}],
    ),
    (
        "index: { field: f, key: name, value: n }",
        [{"f": [{"name": "a", "n": 1, "x": 2}]}, {"f": [{"name": "a", "n": 1}]}],
        [{"f": {"a": 1}}],
    ),
    ("link: { field: n }", [{"n": "https://example.com/2"}], [{"n": "https://example.com/2"}]),
    ("omit_null: { field: n }", [{"n": None}, {}, {"n": 1}], [{"n": None}, {}, {"n": 1}]),
    ("omit_null: { field: n, value: 0 }", [{"n": 0}, {}], [{"n": 0}, {}]),
    ("fill_null: { field: n }", [{"n": None}, {}, {"n": 1}], [{"n": None}, {}, {"n": 1}]),
    ("fill_null: { field: n, value: 0 }", [{"n": 0}, {}], [{"n": 0}, {}]),
    ("wrap: { field: o }", [{"o": "a"}], [{"o": ["a", "b"]}, {"o": []}]),
    ("wrap: { field: o, many: refuse }", [{"o": "a"}], [{"o": ["a", "b"]}, {"o": ["a"]}]),
    ("unwrap: { field: o }", [{"o": ["a", "b"]}, {"o": []}], [{"o": "a"}]),
    ("unwrap: { field: o, many: keep, empty: absent }", [{"o": []}, {}, {"o": [1, 2]}], [{"o": 1}]),
    ("unwrap: { field: o, many: refuse }", [{"o": ["a", "b"]}, {"o": ["a"]}], [{"o": "a"}]),
    (
        "join: { fields: [a, b], into: c }",
        [{"a": "Mary Ann", "b": "Lee"}],
        [{"c": "A B C"}, {"c": " A"}],
    ),
    (
        "join: { fields: [a, b], into: c, default: null }",
        [{"a": "Mary Ann", "b": "Lee"}],
        [{"c": "A B C"}, {"c": " A"}],
    ),
    (
        "join: { fields: [a, m, b], into: c, optional: [m] }",
        [{"a": "Mary Ann", "m": "", "b": "Lee"}],
        [{"c": "A B C D"}, {"c": "A  B"}],
    ),
    (
        "split: { field: c, into: [a, b] }",
        [{"c": "A B C"}, {"c": "A"}, {"c": " A"}, {"c": "A  B"}],
        [{"a": "Mary Ann", "b": "Lee"}],
    ),
    ("join_list: { field: t, separator: ',' }", [{"t": ["a,b"]}, {"t": ["a"]}], [{"t": "a,,b"}]),
    ("split_list: { field: t, separator: ',' }", [{"t": "a,,b"}], [{"t": ["a,b"]}, {"t": ["a"]}]),
    (
        "envelope: { field: o, into: data }",
        [{"o": {"id": 1}}],
        [{"o": {"data": {"id": 1}, "x": 2}}],
    ),
    ("extract: { field: o, key: id }", [{"o": {"id": 1, "x": 2}}], [{"o": 1}]),
    ("extract: { field: 'o[]', key: id }", [{"o": [{"id": 1, "x": 2}]}], [{"o": [1]}]),
    ("extract: { field: o, key: id, others: refuse }", [{"o": {"id": 1, "x": 2}}], [{"o": 1}]),
    ("flatten: { field: a, prefix: a_ }", [{"a": {"x": 1}}, {"a": {}}, {"a": None}], [{"a_x": 1}]),
    ("nest: { field: a, prefix: a_ }", [{"a_x": 1}], [{"a": {"x": 1}}, {"a": {}}, {"a": None}]),
    (
        "spread: { field: c, into: 'l[].c' }",
        [{"c": "E", "l": [{"n": 1}]}, {"c": "E", "l": []}],
        [{"c": "E", "l": [{"c": "E"}, {"c": "U"}]}, {"c": "U", "l": [{"c": "E"}]}],
    ),
    (
        "spread: { field: c, into: 'l[].c', keep: false }",
        [{"c": "E", "l": [{"n": 1}]}, {"c": "E", "l": []}],
        [{"l": [{"c": "E"}, {"c": "U"}]}, {"l": [{"c": "E"}, {}]}],
    ),
    (
        "collect: { field: 'l[].c', into: c }",
        [{"c": "E", "l": [{"c": "E"}, {"c": "U"}]}, {"c": "U", "l": [{"c": "E"}]}],
        [{"c": "E", "l": [{"n": 1}]}, {"c": "E", "l": []}],
    ),
    (
        "collect: { field: 'l[].c', into: c, keep: false }",
        [{"l": [{"c": "E"}, {"c": "U"}]}, {"l": [{"c": "E"}, {}]}],
        [{"c": "E", "l": [{"n": 1}]}, {"c": "E", "l": []}],
    ),
    ("use: { group: item, at: ['i[]'] }", [{"i": [{"name": 1}]}], [{"i": [{"title": 1}]}]),
    ("to_header: { field: t, header: X-T, type: number }", [{"t": 1}], [{}]),
    ("to_header: { field: t, header: X-T, type: number, default: 0 }", [{"t": 1}], [{}]),
    ("from_header: { field: t, header: X-T, type: number }", [{}], [{"t": 1}]),
    ("from_header: { field: t, header: X-T, type: number, default: 0 }", [{}], [{"t": 1}]),
    ("to_query: { field: q, parameter: q }", [{"q": "a"}], [{}]),
    ("from_query: { field: q, parameter: q }", [{}], [{"q": "a"}]),
    ("default: { field: c, value: web }", [{"c": "app"}], [{}]),
    ("default: { field: c, value: web, keep: true }", [{"c": "app"}, {}], [{"c": "app"}, {}]),
    ("remove: { field: c, value: web }", [{}], [{"c": "app"}]),
    ("remove: { field: c }", [{}], [{"c": "app"}]),
]


@pytest.mark.parametrize("service_is_newer", [True, False], ids=["newer", "older"])
@pytest.mark.parametrize(("written", "newer", "older"), TABLE, ids=[row[0] for row in TABLE])
def test_check_warns_exactly_about_the_fields_that_writing_back_loses(
    tmp_path: Path, written: str, newer: list[Any], older: list[Any], *, service_is_newer: bool
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(RULES.format(versions=NEWER if service_is_newer else OLDER, change=written))
    found = check_conversions(path, {}, load_file(path, {}))
    warnings = [issue.text for issue in found if issue.place == "apis.orders.endpoints[0]"]
    data = read(written.encode(), "example", {}).data
    ((_, section),) = ChangeConfig.model_validate_json(json.dumps(data)).named().items()
    for method in ("PUT", "PATCH"):
        lost = {
            name
            for document in (newer if service_is_newer else older)
            for name in destroyed(
                document, written_back(section, document, method, service_is_newer)
            )
        }
        texts = [text for text in warnings if method in text.partition(" to ")[0]]
        assert bool(texts) == bool(lost), (method, texts, lost)
        if not written.startswith("key_case"):  # the change does not know the keys
            assert all(f"'{name}" in texts[0] for name in lost), (method, texts, lost)


def written_back(section: BodySection, document: Any, method: str, service_is_newer: bool) -> Any:
    """Return the service's data after a client has read it and written it back."""
    mistakes = Mistakes()
    change = section.body_change(
        BuildContext(mistakes, GROUPS, between=(Version(1, "1"), Version(2, "2")))
    )
    assert change is not None
    assert not mistakes.found
    reading, writing = Direction.DOWN, Direction.UP
    if not service_is_newer:
        reading, writing = writing, reading
    body = json.dumps(document).encode()
    changes = change, (change.for_patch() if method == "PATCH" else change)
    way = QueryWalk([], ())
    messages = Message("GET", "/v2/o", status=200, way=way), Message(method, "/v2/o", way=way)
    for direction, one, message in zip((reading, writing), changes, messages, strict=True):
        link = VersionLink(
            Version(1, "1"), Version(2, "2"), (one,), needs_message=section.needs_message
        )
        conversion = BodyConversion((link,), direction, message.status is None)
        try:
            body = json_body.convert(body, conversion, message)
        except ConversionError:
            return document  # nothing is written
    made = json.loads(body)
    return merged(document, made) if method == "PATCH" else made


def merged(document: Any, patch: Any) -> Any:
    """Return a document after a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        result[name] = merged(result.get(name), value)
        if value is None:
            del result[name]
    return result


def destroyed(before: Any, after: Any) -> Iterator[str]:
    for name, value in before.items():
        if loses(value, after.get(name)):
            yield name


def loses(before: Any, after: Any) -> bool:
    if before in (None, [], {}):
        return False
    if isinstance(before, dict) and isinstance(after, dict):
        return any(loses(value, after.get(name)) for name, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(after) < len(before) or any(map(loses, before, after))
    return bool(before != after)
