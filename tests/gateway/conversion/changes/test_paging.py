"""Paging: pages and offsets, there and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.changes.build_context import ParameterContext
from gateway.conversion.changes.paging import OffsetForm, PageForm, PagingForm, UsualSize
from gateway.conversion.changes.registry import ParameterConfig
from gateway.conversion.parameter_change import (
    LINK,
    QUERY,
    in_direction,
    parse_query,
    rewrite_query,
    write_query,
)
from tests.gateway.world import LAW

OFFSET = OffsetForm("offset", "limit")
PAGE = PageForm("page", "per_page", usual=20)
FROM_0 = PageForm("p", "n", first=0)


def read(form: PagingForm, text: str) -> dict[str, str]:
    """Return the parameters of a query of one form."""
    values = dict(pair.split("=") for pair in text.split("&"))
    assert {*values} <= {*form.names}
    return values


@pytest.mark.parametrize(
    ("source", "target", "asked", "wanted"),
    [
        (PAGE, OFFSET, "page=3&per_page=10", "offset=20&limit=10"),
        (PAGE, OFFSET, "page=3", "offset=40"),
        (PAGE, OFFSET, "per_page=10", "limit=10"),
        (OFFSET, PAGE, "offset=40", "page=3"),
        (OFFSET, PAGE, "limit=10", "per_page=10"),
        (OFFSET, PAGE, "offset=0&limit=5", "page=1&per_page=5"),
        (FROM_0, PAGE, "p=0&n=5", "page=1&per_page=5"),
    ],
)
def test_a_part(source: PagingForm, target: PagingForm, asked: str, wanted: str) -> None:
    assert target.write(source.read(read(source, asked))) == read(target, wanted)


@pytest.mark.parametrize(
    ("source", "target", "asked", "reason"),
    [
        (OFFSET, PAGE, "offset=5&limit=10", "begins within a page, and the other version has"),
        (OFFSET, PAGE, "offset=5&limit=0", "expected a size above 0 in 'per_page'"),
        (FROM_0, OFFSET, "p=1", "has no size of pages"),
        (PAGE, OFFSET, "page=0", "the first page is 1"),
        (PAGE, OFFSET, "page=-1", "expected a whole number in 'page'"),
        (OFFSET, PAGE, "limit=1e3", "expected a whole number in 'limit'"),
        (OFFSET, PAGE, "limit=\u0661", "expected a whole number in 'limit'"),
    ],
)
def test_what_is_refused(source: PagingForm, target: PagingForm, asked: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        target.write(source.read(read(source, asked)))


@LAW
@given(st.integers(1, 10**6), st.integers(1, 10**6) | st.none(), st.sampled_from([OFFSET, FROM_0]))
def test_there_and_back(page: int, size: int | None, other: PagingForm) -> None:
    asked = {"page": str(page)} | ({} if size is None else {"per_page": str(size)})
    if size is None and other is FROM_0:
        return  # it names no size of its own
    assert PAGE.write(other.read(other.write(PAGE.read(asked)))) == asked


@pytest.mark.parametrize(
    ("message", "asked", "wanted"),
    [
        (None, "city=Linz", "city=Linz&limit=10"),
        (None, "limit=5", "limit=5"),
        (LINK, "offset=20", "offset=20&limit=10"),
        (LINK, "city=Linz", "city=Linz"),
    ],
)
def test_the_usual_size(message: object, asked: str, wanted: str) -> None:
    usual = UsualSize(("offset", "limit"), "10")
    lines = usual.up(parse_query(asked), QUERY.of(message))
    assert write_query(lines) == wanted
    assert usual.down(lines, QUERY.of(message)) == lines


@pytest.mark.parametrize(
    ("upwards", "asked", "wanted"),
    [
        (True, "", "limit=10"),
        (True, "page=3", "offset=20&limit=10"),
        (True, "per_page=5", "limit=5"),
        (False, "", "per_page=20"),
        (False, "offset=40", "page=3&per_page=20"),
        (False, "offset=40&limit=10", "page=5&per_page=10"),
    ],
)
def test_each_version_has_its_own_page_size(upwards: bool, asked: str, wanted: str) -> None:
    declared = {
        "newer": {"offset": "offset", "limit": "limit"},
        "older": {"page": "page", "size": "per_page"},
        "size": {"newer": 20, "older": 10},
    }
    (form,) = ParameterConfig.model_validate_json(json.dumps({"paging": declared})).named().values()
    change = form.parameter_change(ParameterContext((), Mistakes(), header=False))
    assert change is not None
    assert rewrite_query(asked, in_direction([change], upwards=upwards)) == wanted
