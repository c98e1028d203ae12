"""Declared conversions become the changes of the core."""

import pytest

from gateway.core.conversion.chain import Link
from gateway.core.conversion.changes import Change, Default, Inverse, Join
from tests.gateway.config.text import edited, loaded

JOIN = "join: { fields: [name.first, name.last], into: name }"


def link(old: str, new: str) -> Link:
    """Return the link between 1 and 2, in rules that serve 1 via 2."""
    text = edited(old, new).replace('"1": { service: old }', '"1": { via: "2" }')
    found = loaded(text).router.find("/v1/person")
    assert found is not None
    (conversion,) = [leg.response for leg in found[0].legs.values() if leg.response is not None]
    (only,) = conversion.links
    return only


@pytest.mark.parametrize(
    ("written", "change"),
    [
        (JOIN, Join((), (("name", "first"), ("name", "last")), ("name",), " ", "")),
        (
            'join: { fields: [b, a], into: c, separator: ", ", default: "?" }',
            Join((), (("b",), ("a",)), ("c",), ", ", "?"),
        ),
        (
            'join: { fields: ["list[].a", "list[].b.c"], into: "list[].d" }',
            Join((("list",),), (("a",), ("b", "c")), ("d",), " ", ""),
        ),
        (
            "split: { field: c, into: [a, b], separator: / }",
            Inverse(Join((), (("a",), ("b",)), ("c",), "/", "")),
        ),
        ("default: { field: a.b, value: 1 }", Default((), ("a", "b"), 1)),
        ("default: { field: a, value: }", Default((), ("a",), None)),
        (
            'default: { field: "a[].b", value: { c: [1.5, text, no, true] } }',
            Default((("a",),), ("b",), {"c": [1.5, "text", "no", True]}),
        ),
    ],
)
def test_change(written: str, change: Change) -> None:
    assert link(JOIN, written).changes == (change,)


def test_changes_keep_their_order() -> None:
    changes = "default: { field: a, value: 1 }\n          - default: { field: b, value: 2 }"
    assert [
        change.field for change in link(JOIN, changes).changes if isinstance(change, Default)
    ] == [
        ("a",),
        ("b",),
    ]


def test_no_changes() -> None:
    assert link(f"changes:\n          - {JOIN}", "changes: []").changes == ()


def test_statuses() -> None:
    assert link("changes:", "changes:").statuses == frozenset()
    assert link("changes:", "statuses: [404, 422]\n        changes:").statuses == {404, 422}
