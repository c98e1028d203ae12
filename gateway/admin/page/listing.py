"""Listing: one page of a table, sorted and filtered by the query parameters of the URL."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

R = TypeVar("R")

PAGE = 50


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
        """Return the query string with some parameters changed; empty parameters are omitted."""
        query = {**self.query, **{name: str(value) for name, value in changes.items()}}
        return "?" + urlencode({name: value for name, value in query.items() if value})

    def sorted_by(self, column: str) -> str:
        """Return the query string that sorts by a column; the current order is reversed."""
        descending = not self.descending if column == self.sort else False
        return self.link(sort=f"-{column}" if descending else column, page="")

    def direction(self, column: str) -> str:
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
        query: the query parameters of the URL. `sort` is a column name, preceded by a minus sign
            for descending order. `page` is a number from 1. Invalid values are ignored.
    """
    matching = list(rows) if fits is None else [row for row in rows if fits(row)]
    wanted = query.get("sort", default)
    if wanted.removeprefix("-") not in columns:
        wanted = default
    sort, descending = wanted.removeprefix("-"), wanted.startswith("-")
    matching.sort(key=columns[sort], reverse=descending)  # type: ignore[arg-type]  # one type per column
    pages = max(-(-len(matching) // size), 1)
    number = query.get("page", "1")
    page = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 1
    page = min(max(page, 1), pages)
    shown = matching[(page - 1) * size : page * size]
    return Listing(shown, len(rows), len(matching), page, pages, sort, descending, dict(query))
