"""`sort`: the order of a list by a sign in one version, by a word in the other."""

from collections.abc import Iterator
from typing import Literal

from gateway.base.model import NonEmptyText
from gateway.conversion.changes.change_section import Loss, ParameterSection, Upgrade
from gateway.conversion.changes.change_site import ParameterSite
from gateway.conversion.changes.recombined import Recombined
from gateway.conversion.parameter_change import ParameterChange


class SortConfig(ParameterSection):
    """Write the order of a list otherwise: `sort=-date`, or `sort=date` beside `order=desc`."""

    field: str
    """The parameter with the names of fields, separated by commas."""
    order: str
    """The parameter that has asc or desc, in the version that has words for the order."""
    newer: Literal["sign", "word"]
    """What the newer version has: a sign before each field, or words in a second parameter."""
    older: Literal["sign", "word"]
    """What the older version has: a sign before each field, or words in a second parameter."""
    ascending: NonEmptyText = "asc"
    """The word for the ascending order in `order`, which also counts for no word. The default is
    asc."""
    descending: NonEmptyText = "desc"
    """The word for the descending order in `order`. The default is desc."""

    default: str | None = None
    """The field that a word orders by where a request names no field, or "" for the usual order of
    the service. Without it, such a request is refused."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads the parameters of the older version."""
        return Upgrade(
            takes=self._names(self.older), makes=self._names(self.newer), reads={}, leaves={}
        )

    def losses(self) -> Iterator[Loss]:
        """Return nothing: every order can be written both ways."""
        return iter(())

    def parameter_change(self, site: ParameterSite) -> ParameterChange | None:
        """Return the change of the parameters."""
        # Imported when rules name it: it takes memory that most can save.
        from gateway.conversion.changes.sort_order import SignForm, SortForm, WordForm

        if self.newer == self.older:
            site.complain("is the form that it has already; remove the change", "older")
            return None
        field, order = site.name(self.field, "field"), site.name(self.order, "order")
        sign = SignForm(field)
        word = WordForm(field, order, self.ascending, self.descending, self.default)
        forms: tuple[SortForm, SortForm] = (sign, word)
        newer, older = forms if self.newer == "sign" else forms[::-1]
        return Recombined(
            newer.names,
            older.names,
            lambda values: newer.write(older.read(values)),
            lambda values: older.write(newer.read(values)),
        )

    def _names(self, form: str) -> tuple[str, ...]:
        return (self.field,) if form == "sign" else (self.field, self.order)
