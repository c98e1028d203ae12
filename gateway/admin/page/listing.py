"""Listing: one page of a table, sorted and filtered as the query of its address says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

R = TypeVar("R")

PAGE = 50
"""The rows of a page."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[R]):
    rows: Sequence[R]
    total: int
    matching: int
    page: int
    pages: int
    sort: str
    descending: bool
    query: Mapping[str, str]

    def link(self, **changes: object) -> str:
        """Return the query of the same table with other parameters; an empty one is left out."""
        query = {**self.query, **{name: str(value) for name, value in changes.items()}}
        return "?" + urlencode({name: value for name, value in query.items() if value})

    def sorted_by(self, column: str) -> str:
        """Return the query of the same rows by a column; by the present one, upside down."""
        descending = not self.descending if column == self.sort else False
        return self.link(sort=f"-{column}" if descending else column, page="")

    def direction(self, column: str) -> str:
        """Return `ascending`, `descending` or `none`, as `aria-sort` has it."""
        if column != self.sort:
            return "none"
        return "descending" if self.descending else "ascending"


def listing(
    rows: Sequence[R],
    query: Mapping[str, str],
    columns: Mapping[str, Callable[[R], object]],
    *,
    default: str,
    fits: Callable[[R], bool] | None,
    size: int = PAGE,
) -> Listing[R]:
    """Return one page of a table.

    Args:
        query: the parameters of the address; `sort` is a column, with a minus sign before it for
            the highest first, and `page` a number from 1. What names nothing is left aside.
        default: the `sort` of an address that names none.
        fits: whether a row is shown; None shows all.
    """
    matching = list(rows) if fits is None else [row for row in rows if fits(row)]
    wanted = query.get("sort", default)
    if wanted.removeprefix("-") not in columns:
        wanted = default
    sort, descending = wanted.removeprefix("-"), wanted.startswith("-")
    matching.sort(key=columns[sort], reverse=descending)  # type: ignore[arg-type]  # of one column, alike
    pages = max(-(-len(matching) // size), 1)
    number = query.get("page", "1")
    page = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 1
    page = min(max(page, 1), pages)
    shown = matching[(page - 1) * size : page * size]
    return Listing(shown, len(rows), len(matching), page, pages, sort, descending, dict(query))
