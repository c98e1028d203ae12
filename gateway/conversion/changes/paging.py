"""`paging`: a page and its size in one version, an offset and a limit in the other."""

import re
from typing import Annotated, NamedTuple

from pydantic import Field

from gateway.base.model import NonEmptyText, NumberText, PositiveInt, SectionModel
from gateway.conversion.changes.change_section import BuildContext, ParameterSection
from gateway.conversion.changes.default import add_parameter
from gateway.conversion.parameter_change import (
    LINK,
    ConvertUnfit,
    ConvertValues,
    ParameterChange,
    ParameterLines,
    ParameterValues,
    Spelling,
    inverse_parameter,
    parameter_sequence,
    recombined,
)

_WHOLE = re.compile(r"[0-9]{1,15}\Z", re.ASCII)


class PagingSide(SectionModel):
    """The paging parameters of one version: `offset` and `limit`, or `page` and `size`."""

    offset: NonEmptyText | None = None
    """The parameter with the number of skipped elements."""
    limit: NonEmptyText | None = None
    """The parameter with the maximum number of elements; used together with offset."""
    page: NonEmptyText | None = None
    """The parameter with the number of the page."""
    size: NonEmptyText | None = None
    """The parameter with the size of a page; used together with page."""
    first: Annotated[int, Field(ge=0), NumberText] | None = None
    """The number of the first page. Without it, the first page is 1."""


class PagingSizes(SectionModel):
    """The page size of each version for a request without a page size."""

    newer: PositiveInt
    """The page size in the newer version for a request without a page size."""
    older: PositiveInt
    """The page size in the older version for a request without a page size."""


class Paging(ParameterSection):
    """Convert the paging of a list between page and size, and offset and limit."""

    keyword = "paging"

    newer: PagingSide
    """The paging parameters of the newer version."""
    older: PagingSide
    """The paging parameters of the older version."""
    size: PositiveInt | PagingSizes | None = None
    """The page size for a request without a page size: one number for both versions, or one for
    each version, such as `{ newer: 20, older: 10 }`. With one for each version, requests to the
    service always have a size. Without it, a request with a page but without a size is refused."""

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        newer = self._form(self.newer, "newer", context)
        older = self._form(self.older, "older", context)
        if newer is None or older is None:
            return None
        if self.newer.offset and self.older.offset:
            context.mistakes.add(
                "both versions use offset and limit; rename them, and if their"
                " default limits differ, set one by a default with keep: true"
            )
            return None
        # A request without a page size means the page size of its own version.
        size = self.size
        sizes = (size.older, size.newer) if isinstance(size, PagingSizes) else (size, size)
        paging = recombined(
            newer.names,
            older.names,
            rewrite_pages(older, newer, sizes[0]),
            rewrite_pages(newer, older, sizes[1]),
            (move_unfit(older, newer), move_unfit(newer, older)),
        )
        if not isinstance(size, PagingSizes):
            return paging
        return parameter_sequence(
            inverse_parameter(add_size(older.names, str(size.newer))),
            paging,
            add_size(newer.names, str(size.older)),
        )

    def _form(self, side: PagingSide, key: str, context: BuildContext) -> "PagingForm | None":
        match side:
            case PagingSide(offset=str(), limit=str(), page=None, size=None, first=None):
                names = side.offset, side.limit
            case PagingSide(offset=None, limit=None, page=str(), size=str()):
                names = side.page, side.size
            case _:
                context.mistakes.add("write offset and limit, or page and size", key)
                return None
        one, other = (context.name(name or "", key) for name in names)
        first = None if side.page is None else 1 if side.first is None else side.first
        return PagingForm(one, other, first)


class PagingForm(NamedTuple):
    """The two paging parameters of one version.

    `first` is the number of the first page; None if `begin` is a number of skipped elements.
    """

    begin: str
    length: str
    first: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.begin, self.length)


def rewrite_pages(source: PagingForm, target: PagingForm, usual: int | None) -> ConvertValues:
    """Return a function that refuses a request without a page size if `usual` is None."""

    def size_of(named: int | None, form: PagingForm) -> int:
        size = usual if named is None else named
        if not size:
            raise ValueError(
                f"expected a size above 0 in '{form.length}'" if size == 0 else "has no page size"
            )
        return size

    def convert(values: ParameterValues) -> ParameterValues:
        begin, length = (_number(values, name) for name in source.names)
        if begin is not None and source.first is not None:
            if begin < source.first:
                raise ValueError(f"the first page is {source.first}")
            begin = (begin - source.first) * size_of(length, source)
        if begin is not None and target.first is not None:
            begin, rest = divmod(begin, size_of(length, target))
            if rest:
                raise ValueError("begins within a page, and the other version has only whole pages")
            begin += target.first
        made = zip(target.names, (begin, length), strict=True)
        return {name: str(value) for name, value in made if value is not None}

    return convert


def move_unfit(source: PagingForm, target: PagingForm) -> ConvertUnfit:
    """Return a function that converts invalid paging parameters, which the service then refuses.

    If a value is not a whole number, all values move unchanged to the parameters of the other
    version. A page before the first page becomes a negative offset, and a page of size 0 begins at
    0. For other values, the function returns None, because they could select another part of the
    list.
    """
    names = dict(zip(source.names, target.names, strict=True))

    def moved(values: ParameterValues) -> ParameterValues | None:
        made = {names[name]: text for name, text in values.items()}
        if not all(map(_WHOLE.match, values.values())):
            return made
        if source.first is None or source.begin not in values:
            return None
        before = int(values[source.begin]) - source.first
        if before >= 0 and int(values.get(source.length, 1)):
            return None
        return {**made, names[source.begin]: str(min(before, 0))}

    return moved


def add_size(parameters: tuple[str, ...], value: str) -> ParameterChange:
    """Return a change whose upgrade adds the page size to a request without a page size.

    It is needed if the versions have different default page sizes. A URL in a response that has no
    paging parameters is not changed.
    """
    added = add_parameter(parameters[1], value, keep=True)

    def up(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        keys = {spelling.key(name) for name in parameters}
        if spelling.message is LINK and not any(line.key in keys for line in lines):
            return lines
        return added.up(lines, spelling)

    return ParameterChange((), up, lambda lines, _: lines)


def _number(values: ParameterValues, name: str) -> int | None:
    text = values.get(name)
    if text is None:
        return None
    if not _WHOLE.match(text):
        raise ValueError(f"expected a whole number in '{name}'")
    return int(text)
