"""`python`: two Python functions convert what no other change describes."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated

from gateway.config.changes.change_section import WHOLE, BodySection, Loss, Upgrade
from gateway.config.changes.change_site import BodySite
from gateway.config.python_functions import load_function
from gateway.config.shape import matching
from gateway.core.conversion.change import Change, Whole
from gateway.core.conversion.changes.python_change import PythonChange
from gateway.core.conversion.steps import BODY

_PYTHON = r"^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_.]*$"

PythonName = Annotated[str, matching(_PYTHON, "not a Python function; write module:function")]


class PythonConfig(BodySection):
    """Call Python functions, which are given a value and return the other version's value."""

    field: str | None = None
    """The field whose value the functions are given; without it, that is the whole object."""
    up: PythonName
    """The function that returns the newer version's value, written as module:function."""
    down: PythonName
    """The function that returns the older version's value, written as module:function."""
    each: bool = True
    """Whether, of a body that is an array, each element is given (the default), else the array."""

    @classmethod
    def parameter_form(cls) -> None:
        """Return None: functions are of values in bodies."""
        return

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it replaces a value, or the whole object, by any other."""
        return Upgrade.in_place(WHOLE if self.field is None else self.field)

    def losses(self) -> Iterable[Loss]:
        """Return nothing: what a function loses is not known."""
        return ()

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the whole object."""
        path = None if self.field is None else site.path(self.field, "field")
        up = site.attempt(partial(load_function, self.up), "up")
        down = site.attempt(partial(load_function, self.down), "down")
        if up is None or down is None or (path is None and self.field is not None):
            return None
        if not self.each:
            if path is not None:
                site.complain("goes with the whole body; remove it, or field", "each")
            return Whole(PythonChange((), BODY, up, down))
        return PythonChange(path.scopes if path else (), path.keys if path else None, up, down)
