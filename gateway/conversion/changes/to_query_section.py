"""`to_query` and `from_query`: a field of the body is a query parameter in the other version."""

from typing import Literal

from gateway.conversion.changes.carry_section import CarrySection, name_at
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.message.places import Place, QueryPlace


class _QuerySection(CarrySection):
    """What the two changes have in common."""

    parameter: str
    """The name of the query parameter."""

    @property
    def beside(self) -> tuple[Literal["query", "header"], str]:
        """The query parameter."""
        return "query", self.parameter

    def _place(self, site: BodySite) -> Place | None:
        return QueryPlace(name_at(site, self.parameter, "parameter", header=False))


class ToQueryConfig(_QuerySection):
    """Move a field of request bodies into a query parameter of the older version."""


class FromQueryConfig(_QuerySection):
    """Move a query parameter into request bodies of the older version: the reverse of to_query."""

    inverse = True
