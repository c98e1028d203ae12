"""Paging: conversion between page numbers and offsets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.paging import PagingForm, add_size, rewrite_pages
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

OFFSET = PagingForm("offset", "limit")
PAGE = PagingForm("page", "per_page", 1)
FROM_0 = PagingForm("p", "n", 0)


def rewritten(source: PagingForm, target: PagingForm, text: str) -> str:
    """Convert a query to other paging parameters.

    The default page size is 20, except for FROM_0, which has no default.
    """
    convert = rewrite_pages(source, target, None if FROM_0 in (source, target) else 20)
    made = convert(dict(pair.split("=") for pair in text.split("&")))
    return "&".join(f"{name}={value}" for name, value in made.items())


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
def test_paging_parameters_are_converted_between_pages_and_offsets(
    source: PagingForm, target: PagingForm, asked: str, wanted: str
) -> None:
    assert rewritten(source, target, asked) == wanted


@pytest.mark.parametrize(
    ("source", "target", "asked", "reason"),
    [
        (OFFSET, PAGE, "offset=5&limit=10", "begins within a page, and the other version has"),
        (OFFSET, PAGE, "offset=5&limit=0", "expected a size above 0 in 'per_page'"),
        (FROM_0, OFFSET, "p=1", "has no page size"),
        (PAGE, OFFSET, "page=0", "the first page is 1"),
        (PAGE, OFFSET, "page=-1", "expected a whole number in 'page'"),
        (OFFSET, PAGE, "limit=1e3", "expected a whole number in 'limit'"),
        (OFFSET, PAGE, "limit=\u0661", "expected a whole number in 'limit'"),
    ],
)
def test_paging_parameters_without_an_equivalent_are_refused(
    source: PagingForm, target: PagingForm, asked: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        rewritten(source, target, asked)


@LAW
@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_page_survives_a_round_trip_through_an_offset(page: int, size: int) -> None:
    asked = f"page={page}&per_page={size}"
    assert rewritten(OFFSET, PAGE, rewritten(PAGE, OFFSET, asked)) == asked
    assert rewritten(FROM_0, PAGE, rewritten(PAGE, FROM_0, asked)) == asked


@pytest.mark.parametrize(
    ("message", "asked", "wanted"),
    [
        (None, "city=Linz", "city=Linz&limit=10"),
        (None, "limit=5", "limit=5"),
        (LINK, "offset=20", "offset=20&limit=10"),
        (LINK, "city=Linz", "city=Linz"),
    ],
)
def test_a_request_without_a_page_size_gets_the_default_size(
    message: object, asked: str, wanted: str
) -> None:
    usual = add_size(("offset", "limit"), "10")
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
def test_each_version_has_its_own_default_page_size(upwards: bool, asked: str, wanted: str) -> None:
    declared = {
        "newer": {"offset": "offset", "limit": "limit"},
        "older": {"page": "page", "size": "per_page"},
        "size": {"newer": 20, "older": 10},
    }
    (form,) = ParameterConfig.model_validate_json(json.dumps({"paging": declared})).named().values()
    change = form.parameter_change(BuildContext(Mistakes(), header=False))
    assert change is not None
    assert rewrite_query(asked, in_direction([change], upwards=upwards)) == wanted
