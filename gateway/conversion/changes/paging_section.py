"""`paging`: a page and its size in one version, an offset and a limit in the other."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gateway.base.model import NonEmptyText, NumberText, PositiveInt, SectionModel
from gateway.conversion.changes.change_section import Loss, ParameterSection, Upgrade
from gateway.conversion.changes.change_site import ParameterSite
from gateway.conversion.changes.recombined import Recombined
from gateway.conversion.parameter_change import ParameterChange, ParameterSequence, Reversed

# The forms of paging are imported when rules name them: they take memory that most can save.
if TYPE_CHECKING:
    from gateway.conversion.changes.paging import PagingForm


class PagingSideConfig(SectionModel):
    """The parameters of one version: `offset` and `limit`, or `page` and `size`."""

    offset: NonEmptyText | None = None
    """The parameter with the number of elements that are left out."""
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
        """The names of the parameters."""
        return tuple(filter(None, (self.offset, self.limit, self.page, self.size)))


class PagingSizesConfig(SectionModel):
    """The size of pages where a request names none, by version."""

    newer: PositiveInt
    """The elements of a page of the newer version where a request names no size."""
    older: PositiveInt
    """The elements of a page of the older version where a request names no size."""


class PagingConfig(ParameterSection):
    """Ask for a part of a list otherwise: by page and size, or by offset and limit."""

    newer: PagingSideConfig
    """The parameters by which the newer version asks for a part of a list."""
    older: PagingSideConfig
    """The parameters by which the older version asks for a part of a list."""
    size: PositiveInt | PagingSizesConfig | None = None
    """The size of pages where a request names none: of both versions, or of each, such as
    `{ newer: 20, older: 10 }`, and then the service is always asked for a size. Without it, a page
    without a size is refused."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads the parameters of the older version."""
        return Upgrade(takes=self.older.names, makes=self.newer.names, reads={}, leaves={})

    def losses(self) -> Iterator[Loss]:
        """Return nothing: what is no page is refused."""
        return iter(())

    def parameter_change(self, site: ParameterSite) -> ParameterChange | None:
        """Return the change of the parameters."""
        newer, older = self._form(self.newer, "newer", site), self._form(self.older, "older", site)
        if newer is None or older is None:
            return None
        if self.newer.offset and self.older.offset:
            site.complain(
                "both versions have offset and limit; rename them, and where another limit is"
                " usual, give it by a default with keep: true"
            )
            return None
        from gateway.conversion.changes.paging import unfit

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
        from gateway.conversion.changes.paging import UsualSize

        to_newer = UsualSize(self.newer.names, str(self.size.older))
        to_older = UsualSize(self.older.names, str(self.size.newer))
        return ParameterSequence((Reversed(to_older), paging, to_newer))

    def _size(self, version: str) -> int | None:
        size = self.size
        if isinstance(size, PagingSizesConfig):
            return size.newer if version == "newer" else size.older
        return size

    def _form(
        self, side: PagingSideConfig, key: str, site: ParameterSite
    ) -> "Callable[[int | None], PagingForm] | None":
        """Return what makes the form of a side, given the size where a request names none."""
        from gateway.conversion.changes.paging import OffsetForm, PageForm

        match side:
            case PagingSideConfig(offset=str(), limit=str(), page=None, size=None, first=None):
                names = side.offset, side.limit
            case PagingSideConfig(offset=None, limit=None, page=str(), size=str()):
                names = side.page, side.size
            case _:
                site.complain("write offset and limit, or page and size", key)
                return None
        one, other = (site.name(name or "", key) for name in names)
        if side.page is None:
            return lambda _: OffsetForm(one, other)
        first = 1 if side.first is None else side.first
        return lambda usual: PageForm(one, other, first, usual)
