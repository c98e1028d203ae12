"""What all changes have in common by which a value goes between a body and another place."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import JsonValue

from gateway.conversion.change import Change, Inverse, Whole
from gateway.conversion.changes.change_section import BodySection, Loss, Upgrade
from gateway.conversion.changes.change_site import BodySite, ParameterSite
from gateway.conversion.changes.value_kinds import BOOLEAN, NUMBER, TEXT
from gateway.conversion.document import MISSING
from gateway.conversion.message.carry import Carry
from gateway.conversion.message.places import Place
from gateway.conversion.scalars import Type

_KINDS = {"text": TEXT, "number": NUMBER, "boolean": BOOLEAN}


class CarrySection(BodySection):
    """A value that one version has in the body, and the other in another place of the message.

    Attributes:
        inverse: whether the older version has it in the body, else the newer one.
    """

    field: str
    """The field of the body, from its root, such as `page.total`."""
    type: Literal["text", "number", "boolean"] = "text"
    """The type of the value in the body. The default is text."""
    default: JsonValue = None
    """The JSON value of the field where the other place is empty, such as null. Without it, the
    body has no such field then."""

    inverse: ClassVar[bool] = False

    @property
    @abstractmethod
    def beside(self) -> tuple[Literal["query", "header"], str]:
        """The kind of the other place, and the name of the parameter or header field there."""

    @property
    def needs_message(self) -> bool:
        """True: a body has no other places."""
        return True

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it makes the field, or takes it away."""
        if self.inverse:
            reads = {self.field: _KINDS[self.type]}
            return Upgrade(takes=(self.field,), makes=(), reads=reads, leaves={})
        return Upgrade(takes=(), makes=(self.field,), reads={}, leaves={})

    def losses(self) -> Iterator[Loss]:
        """Yield what a default leaves open."""
        if "default" in self.model_fields_set:
            text = f"where '{self.field}' is absent, it comes back as the default"
            yield Loss(self.inverse, text)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of the whole body."""
        keys = site.keys(self.field, "field")
        place = self._place(site)
        if keys is None or place is None:
            return None
        default = self.default if "default" in self.model_fields_set else MISSING
        change = Carry(keys, place, Type(self.type), default)
        return Whole(Inverse(change) if self.inverse else change)

    @abstractmethod
    def _place(self, site: BodySite) -> Place | None:
        """Return the place, or None after recording a mistake."""


def name_at(site: BodySite, name: str, key: str, *, header: bool) -> str:
    """Return the name of a parameter or header field, after recording what is wrong with it."""
    return ParameterSite(site.at, site.mistakes, header).name(name, key)
