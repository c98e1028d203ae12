"""The request head is raw and immutable."""

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.base.overrides import NO_OVERRIDES
from gateway.base.request import ANONYMOUS_CONTEXT, HeaderLookup, RequestContext, RequestHead
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
def test_path_and_query_stay_raw(target: str, path: str, query: str | None) -> None:
    assert head(target, method="HEAD")[:3] == ("HEAD", path, query)


def test_fields_are_any_case_insensitive_multidict() -> None:
    lines: CIMultiDict[str] = CIMultiDict([("a", "1"), ("B", "2"), ("A", "3")])
    fields: HeaderLookup = CIMultiDictProxy(lines)
    assert RequestHead("GET", "/", None, fields).fields.getall("A", ()) == ["1", "3"]
    assert RequestHead("GET", "/", None, fields).fields.getall("c", ()) == ()


def test_a_head_never_changes() -> None:
    with pytest.raises(AttributeError):
        head("/").path = "/other"  # type: ignore[misc]


def test_the_default_context_has_no_client() -> None:
    assert RequestContext() == ANONYMOUS_CONTEXT
    assert (ANONYMOUS_CONTEXT.client, ANONYMOUS_CONTEXT.now, ANONYMOUS_CONTEXT.overrides) == (
        "",
        0.0,
        NO_OVERRIDES,
    )


def test_the_default_draws_avoid_brownouts_and_cutovers() -> None:
    assert not ANONYMOUS_CONTEXT.brownout_draw < 1.0
    assert not ANONYMOUS_CONTEXT.cutover_draw < 1.0
    assert ANONYMOUS_CONTEXT.shadow_draw < 0.0001
