"""Listing: pages of 50 rows, sorted and filtered by query parameters; invalid ones are ignored."""

import pytest

from gateway.admin.page.listing import Listing, listing

NUMBERS = list(range(120))


def page(**query: str) -> Listing[int]:
    return listing(
        NUMBERS,
        query,
        {"number": lambda each: each, "last": lambda each: each % 10},
        default="-number",
        fits=lambda each: query.get("find", "") in str(each),
    )


@pytest.mark.parametrize(
    ("query", "first", "length", "number"),
    [
        ({}, 119, 50, 1),
        ({"page": "3"}, 19, 20, 3),
        ({"page": "99"}, 19, 20, 3),
        ({"page": "0"}, 119, 50, 1),
        ({"page": "x"}, 119, 50, 1),
        ({"page": "٣"}, 119, 50, 1),
        ({"page": "9" * 5000}, 119, 50, 1),
        ({"sort": "number"}, 0, 50, 1),
        ({"sort": "-last"}, 9, 50, 1),
        ({"sort": "nothing"}, 119, 50, 1),
        ({"find": "11"}, 119, 11, 1),
    ],
)
def test_a_page_has_the_rows_that_the_query_selects(
    query: dict[str, str], first: int, length: int, number: int
) -> None:
    found = page(**query)
    assert (found.rows[0], len(found.rows), found.page) == (first, length, number)


def test_a_filter_without_matches_gives_an_empty_page() -> None:
    found = page(find="no")
    assert (found.rows, found.matching, found.total, found.pages) == ([], 0, 120, 1)


def test_links_keep_the_other_parameters() -> None:
    found = page(find="1&2", sort="number", page="2")
    assert found.link(page=3) == "?find=1%262&sort=number&page=3"
    assert found.sorted_by("number") == "?find=1%262&sort=-number"
    assert found.sorted_by("last") == "?find=1%262&sort=last"
    assert (found.direction("number"), found.direction("last")) == ("ascending", "none")
    assert page().direction("number") == "descending"
