"""`paging`: a page and its size in one version, an offset and a limit in the other."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gateway.config.changes.change_section import Loss, ParameterSection, Upgrade
from gateway.config.changes.change_site import ParameterSite
from gateway.config.shape import NonEmptyText, NumberText, PositiveInt, SectionModel
from gateway.core.conversion.parameter_change import ParameterChange
from gateway.core.conversion.parameters.recombined import Recombined

# The forms of paging are imported when rules name them: they take memory that most can save.
if TYPE_CHECKING:
    from gateway.core.conversion.parameters.paging import PagingForm


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


class PagingConfig(ParameterSection):
    """Ask for a part of a list otherwise: by page and size, or by offset and limit."""

    newer: PagingSideConfig
    """The parameters of the newer version."""
    older: PagingSideConfig
    """The parameters of the older version."""
    size: PositiveInt | None = None
    """The size of pages where a request names none, which is the same in both versions; without
    it, such a request is refused."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads the parameters of the older version."""
        return Upgrade(takes=self.older.names, makes=self.newer.names, reads={}, leaves={})

    def losses(self) -> Iterator[Loss]:
        """Return nothing: what is no page is refused."""
        return iter(())

    def parameter_change(self, site: ParameterSite) -> ParameterChange | None:
        """Return the change of the parameters."""
        from gateway.core.conversion.parameters.paging import OffsetForm

        newer, older = self._form(self.newer, "newer", site), self._form(self.older, "older", site)
        if newer is None or older is None:
            return None
        if isinstance(newer, OffsetForm) and isinstance(older, OffsetForm):
            site.complain("both versions have offset and limit; rename them")
            return None
        return Recombined(
            newer.names,
            older.names,
            lambda values: newer.write(older.read(values)),
            lambda values: older.write(newer.read(values)),
        )

    def _form(self, side: PagingSideConfig, key: str, site: ParameterSite) -> "PagingForm | None":
        from gateway.core.conversion.parameters.paging import OffsetForm, PageForm

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
            return OffsetForm(one, other)
        return PageForm(one, other, 1 if side.first is None else side.first, self.size)
