"""The head: as it came, and never changed."""

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.base.request import HeaderLookup, RequestHead
from tests.gateway.world import head


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a", "/a", None),
        ("/a?", "/a", ""),
        ("/a%2F?b=%31&b", "/a%2F", "b=%31&b"),
        ("/a?b?c", "/a", "b?c"),
    ],
)
def test_path_and_query_are_kept_as_they_came(target: str, path: str, query: str | None) -> None:
    assert head(target, method="HEAD")[:3] == ("HEAD", path, query)


def test_fields_are_any_case_insensitive_multidict() -> None:
    lines: CIMultiDict[str] = CIMultiDict([("a", "1"), ("B", "2"), ("A", "3")])
    fields: HeaderLookup = CIMultiDictProxy(lines)
    assert RequestHead("GET", "/", None, fields).fields.getall("A", ()) == ["1", "3"]
    assert RequestHead("GET", "/", None, fields).fields.getall("c", ()) == ()


def test_a_head_never_changes() -> None:
    with pytest.raises(AttributeError):
        head("/").path = "/other"  # type: ignore[misc]
