"""Dry runs: which requests can be tried, and the mark that no client can take away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rollout.dry_run import DryRun
from tests.gateway.world import LAW

HEADER = DryRun("Prefer", "dry-run")
QUERY = DryRun("dry run", "a&b", in_query=True)


@pytest.mark.parametrize(
    ("target", "marked"),
    [
        ("/p", "/p?dry%20run=a%26b"),
        ("/p?", "/p?dry%20run=a%26b"),
        ("/p?q=1&r", "/p?q=1&r&dry%20run=a%26b"),
        ("/p?dry%20run=no&q=1&dry+run&%64ry%20run=", "/p?q=1&dry%20run=a%26b"),
        ("/p?Dry%20run=no", "/p?Dry%20run=no&dry%20run=a%26b"),
    ],
)
def test_a_parameter_is_replaced(target: str, marked: str) -> None:
    assert QUERY.target(target) == marked
    assert HEADER.target(target) == target


def test_a_field_is_replaced() -> None:
    fields = [(b"A", b"b"), (b"prefer", b"respond-async"), (b"Preferred", b"c")]
    assert HEADER.fields(fields) == [(b"A", b"b"), (b"Preferred", b"c"), (b"Prefer", b"dry-run")]
    assert QUERY.fields(fields) == fields


@LAW
@given(st.text("dry run=&%20+?abc", max_size=30))
def test_no_query_leaves_another_mark(query: str) -> None:
    mark = DryRun("dry", "yes", in_query=True)
    marked = mark.target(f"/p?{query}")
    assert marked.endswith("dry=yes")
    assert mark.target(marked) == marked


@pytest.mark.parametrize(
    ("method", "path", "applies"),
    [("POST", "/a", True), ("GET", "/a", False), ("DELETE", "/b", True)],
)
def test_what_can_be_tried(method: str, path: str, applies: bool) -> None:
    assert HEADER.applies(method, path) is applies
    here = DryRun("Prefer", "dry-run", paths=frozenset({"/a"}))
    assert here.applies(method, path) is (applies and path == "/a")
