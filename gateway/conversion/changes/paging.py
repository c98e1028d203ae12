"""`paging`: a page and its size in one version, an offset and a limit in the other."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol

from pydantic import Field

from gateway.base.model import NonEmptyText, NumberText, PositiveInt, SectionModel
from gateway.conversion.changes.build_context import ParameterContext
from gateway.conversion.changes.change_section import Loss, ParameterSection
from gateway.conversion.changes.default import Added
from gateway.conversion.changes.recombined import ParameterValues, Recombined, Unfit
from gateway.conversion.parameter_change import (
    LINK,
    MovedNames,
    ParameterChange,
    ParameterLines,
    ParameterSequence,
    Reversed,
    Spelling,
)

_WHOLE = re.compile(r"[0-9]{1,15}\Z", re.ASCII)


class ListPart(NamedTuple):
    """A part of a list; None where the request leaves it to the service."""

    offset: int | None
    limit: int | None


class PagingForm(Protocol):
    """How one version writes a part of a list."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        ...

    def read(self, values: ParameterValues) -> ListPart:
        """Return the part that parameters ask for; raises ValueError."""
        ...

    def write(self, part: ListPart) -> ParameterValues:
        """Return the parameters that ask for a part; raises ValueError."""
        ...


@dataclass(frozen=True, slots=True)
class OffsetForm:
    """The number of elements before the part, and their largest number in it."""

    offset: str
    limit: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.offset, self.limit)

    def read(self, values: ParameterValues) -> ListPart:
        return ListPart(_number(values, self.offset), _number(values, self.limit))

    def write(self, part: ListPart) -> ParameterValues:
        return _written({self.offset: part.offset, self.limit: part.limit})


@dataclass(frozen=True, slots=True)
class PageForm:
    """The number of the page, and the size of pages.

    Attributes:
        page: The name of the parameter with the number.
        size: The name of the parameter with the size.
        first: The number of the first page.
        usual: The size of pages where a request names none; None refuses a page without a size.
    """

    page: str
    size: str
    first: int = 1
    usual: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.page, self.size)

    def read(self, values: ParameterValues) -> ListPart:
        page, size = _number(values, self.page), _number(values, self.size)
        if page is None:
            return ListPart(None, size)
        if page < self.first:
            raise ValueError(f"the first page is {self.first}")
        return ListPart((page - self.first) * self._size(size), size)

    def write(self, part: ListPart) -> ParameterValues:
        page = None
        if part.offset is not None:
            page, rest = divmod(part.offset, self._size(part.limit))
            if rest:
                raise ValueError("begins within a page, and the other version has whole pages")
            page += self.first
        return _written({self.page: page, self.size: part.limit})

    def _size(self, named: int | None) -> int:
        size = self.usual if named is None else named
        if not size:
            raise ValueError(
                f"expected a size above 0 in '{self.size}'" if size == 0 else "has no size of pages"
            )
        return size


@dataclass(frozen=True, slots=True)
class UsualSize:
    """The size that a request without one means, where another is usual in the newer version.

    A link to no part of the list stays as short as its service writes it.

    Attributes:
        parameters: The parameters of the newer version, that of the size behind the other one.
        value: The size.
    """

    parameters: tuple[str, ...]
    value: str

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return ()

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        keys = {spelling.key(name) for name in self.parameters}
        if spelling.message is LINK and not any(line.key in keys for line in lines):
            return lines
        return Added(self.parameters[1], self.value, keep=True).up(lines, spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:  # as asked
        return lines


def unfit(source: PagingForm, target: PagingForm) -> Unfit:
    """Return what gives parameters that are no part of a list to the service of another version.

    What is no whole number comes to its place as it is. A page before the first one becomes a
    negative offset, and a page of no elements begins at 0. All else is numbers, which would be
    those of another part.
    """
    names = dict(zip(source.names, target.names, strict=True))

    def moved(values: ParameterValues) -> ParameterValues | None:
        made = {names[name]: text for name, text in values.items()}
        if not all(map(_WHOLE.match, values.values())):
            return made
        if not isinstance(source, PageForm) or source.page not in values:
            return None
        before = int(values[source.page]) - source.first
        if before >= 0 and int(values.get(source.size, 1)):
            return None
        return {**made, names[source.page]: str(min(before, 0))}

    return moved


def _number(values: ParameterValues, name: str) -> int | None:
    text = values.get(name)
    if text is None:
        return None
    if not _WHOLE.match(text):
        raise ValueError(f"expected a whole number in '{name}'")
    return int(text)


def _written(values: dict[str, int | None]) -> ParameterValues:
    return {name: str(value) for name, value in values.items() if value is not None}


# The forms of paging are imported when rules name them: they take memory that most can save.


class PagingSideConfig(SectionModel):
    """The parameters of one version: `offset` and `limit`, or `page` and `size`."""

    offset: NonEmptyText | None = None
    """The parameter with the number of skipped elements."""
    limit: NonEmptyText | None = None
    """The parameter with the largest number of elements, beside offset."""
    page: NonEmptyText | None = None
    """The parameter with the number of the page."""
    size: NonEmptyText | None = None
    """The parameter with the size of pages, beside page."""
    first: Annotated[int, Field(ge=0), NumberText] | None = None
    """The number of the first page. Without it, the first page is 1."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.offset, self.limit, self.page, self.size)))


class PagingSizesConfig(SectionModel):
    """The size of pages where a request names none, by version."""

    newer: PositiveInt
    """The newer version's page size if a request names none."""
    older: PositiveInt
    """The older version's page size if a request names none."""


class PagingConfig(ParameterSection):
    """Select a part of a list in another form: by page and size, or by offset and limit."""

    keyword = "paging"

    newer: PagingSideConfig
    """The newer version's parameters for a part of a list."""
    older: PagingSideConfig
    """The older version's parameters for a part of a list."""
    size: PositiveInt | PagingSizesConfig | None = None
    """The page size if a request names none: for both versions, or for each, such as `{ newer: 20,
    older: 10 }`; requests to the service then always have a size. Without it, a page without a size
    is refused."""

    def losses(self) -> Iterator[Loss]:
        return iter(())

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        newer, older = (
            self._form(self.newer, "newer", context),
            self._form(self.older, "older", context),
        )
        if newer is None or older is None:
            return None
        if self.newer.offset and self.older.offset:
            context.complain(
                "both versions have offset and limit; rename them, and where another limit is"
                " usual, give it by a default with keep: true"
            )
            return None

        # A request without a size means that of the version it comes from.
        in_older, in_newer = self._size("older"), self._size("newer")
        paging = Recombined(
            self.newer.names,
            self.older.names,
            lambda values: newer(in_older).write(older(in_older).read(values)),
            lambda values: older(in_newer).write(newer(in_newer).read(values)),
            unfit(older(in_older), newer(in_older)),
            unfit(newer(in_newer), older(in_newer)),
        )
        if not isinstance(self.size, PagingSizesConfig):
            return paging

        to_newer = UsualSize(self.newer.names, str(self.size.older))
        to_older = UsualSize(self.older.names, str(self.size.newer))
        return ParameterSequence((Reversed(to_older), paging, to_newer))

    def _size(self, version: str) -> int | None:
        size = self.size
        if isinstance(size, PagingSizesConfig):
            return size.newer if version == "newer" else size.older
        return size

    def _form(
        self, side: PagingSideConfig, key: str, context: ParameterContext
    ) -> "Callable[[int | None], PagingForm] | None":
        """Return what makes the form of a side, given the size where a request names none."""
        match side:
            case PagingSideConfig(offset=str(), limit=str(), page=None, size=None, first=None):
                names = side.offset, side.limit
            case PagingSideConfig(offset=None, limit=None, page=str(), size=str()):
                names = side.page, side.size
            case _:
                context.complain("write offset and limit, or page and size", key)
                return None
        one, other = (context.name(name or "", key) for name in names)
        if side.page is None:
            return lambda _: OffsetForm(one, other)
        first = 1 if side.first is None else side.first
        return lambda usual: PageForm(one, other, first, usual)
