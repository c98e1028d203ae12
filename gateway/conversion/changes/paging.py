"""Paging: which part of a list a request asks for, by a page and its size or by an offset."""

import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gateway.conversion.changes.default import Added
from gateway.conversion.changes.recombined import ParameterValues, Unfit
from gateway.conversion.parameter_change import LINK, MovedNames, ParameterLines, Spelling

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
        """The names of the parameters."""
        return (self.offset, self.limit)

    def read(self, values: ParameterValues) -> ListPart:
        """Return the part that parameters ask for; raises ValueError."""
        return ListPart(_number(values, self.offset), _number(values, self.limit))

    def write(self, part: ListPart) -> ParameterValues:
        """Return the parameters that ask for a part."""
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
        """The names of the parameters."""
        return (self.page, self.size)

    def read(self, values: ParameterValues) -> ListPart:
        """Return the part that parameters ask for; raises ValueError."""
        page, size = _number(values, self.page), _number(values, self.size)
        if page is None:
            return ListPart(None, size)
        if page < self.first:
            raise ValueError(f"the first page is {self.first}")
        return ListPart((page - self.first) * self._size(size), size)

    def write(self, part: ListPart) -> ParameterValues:
        """Return the parameters that ask for a part; raises ValueError if it is no page."""
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
        names: The parameters of the newer version, that of the size behind the other one.
        value: The size.
    """

    names: tuple[str, ...]
    value: str

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """No names: it comes after the parameters have moved."""
        return ()

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Add the size where it is absent."""
        keys = {spelling.key(name) for name in self.names}
        if spelling.message is LINK and not any(line.key in keys for line in lines):
            return lines
        return Added(self.names[1], self.value, keep=True).up(lines, spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:  # as asked
        """Leave the size as it is."""
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
