"""`python`: two Python functions convert what no other change describes."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated

from gateway.base.model import Seconds, matching
from gateway.conversion.change import Change, Whole
from gateway.conversion.changes.change_section import (
    WHOLE,
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
    Upgrade,
)
from gateway.conversion.changes.change_site import BodySite, ChangeSite, ParameterSite
from gateway.conversion.changes.python_change import (
    MESSAGE,
    PythonChange,
    PythonFunction,
    PythonParameter,
    takes_message,
)
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.python_functions import load_function, module_hash
from gateway.conversion.steps import BODY

_PYTHON = r"^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_.]*$"

PythonName = Annotated[str, matching(_PYTHON, "not a Python function; write module:function")]


class _FunctionsSection(ChangeSection):
    """What `python` of a body and of parameters have in common."""

    up: PythonName
    """The function that returns the newer version's value, written as module:function."""
    down: PythonName
    """The function that returns the older version's value, written as module:function."""

    @property
    def varies(self) -> bool:
        """Whether equal values may have results that differ: functions may do anything."""
        return True

    @property
    def needs_message(self) -> bool:
        """Whether one of the functions takes the message."""
        return any(map(_takes_message, (self.up, self.down)))

    def losses(self) -> Iterable[Loss]:
        """Return nothing: what a function loses is not known."""
        return ()

    def _functions(self, site: ChangeSite) -> tuple[PythonFunction, PythonFunction] | None:
        up = site.attempt(partial(load_function, self.up, (MESSAGE,)), "up")
        down = site.attempt(partial(load_function, self.down, (MESSAGE,)), "down")
        return None if up is None or down is None else (up, down)


class PythonParameterConfig(_FunctionsSection, ParameterSection):
    """Call Python functions, which are given the text of a parameter and return another text."""

    field: str
    """The query parameter or header field, which has the same name in both versions."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it replaces the text."""
        return Upgrade.in_place(self.field)

    def parameter_change(self, site: ParameterSite) -> ParameterChange | None:
        """Return the change of a parameter."""
        name, functions = site.name(self.field, "field"), self._functions(site)
        return None if functions is None else PythonParameter(name, *functions)


class PythonConfig(_FunctionsSection, BodySection):
    """Call Python functions, which are given a value and return the other version's value."""

    field: str | None = None
    """The field whose value the functions are given; without it, that is the whole object."""
    each: bool = True
    """Whether, of a body that is an array, each element is given (the default), else the array."""
    timeout: Seconds | None = None
    """The longest time in seconds that the functions may take for one body, in a process of their
    own, which is then killed. Without it, they run beside all requests, which they must not hold
    up."""

    pure: bool = False
    """Whether equal values always have equal results, so that entity tags stay strong. By default,
    they are weak."""

    @property
    def varies(self) -> bool:
        """Whether equal values may have results that differ."""
        return not self.pure

    @property
    def code(self) -> str:
        """The hash of the modules of pure functions, whose results change with them alone."""
        return "".join(map(module_hash, (self.up, self.down))) if self.pure else ""

    def seconds(self) -> float | None:
        """Return the time limit of the functions."""
        return self.timeout

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it replaces a value, or the whole object, by any other."""
        return Upgrade.in_place(WHOLE if self.field is None else self.field)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the whole object."""
        path = None if self.field is None else site.path(self.field, "field")
        functions = self._functions(site)
        if functions is None or (path is None and self.field is not None):
            return None
        up, down = functions
        if self.timeout is not None:
            from gateway.base.function_process import in_process  # few functions

            up, down = (
                in_process(name, function, self.timeout)
                for name, function in ((self.up, up), (self.down, down))
            )
        if self.pure and self.needs_message:
            site.complain("goes with functions of the value alone; remove it", "pure")
        if not self.each:
            if path is not None:
                site.complain("goes with the whole body; remove it, or field", "each")
            return Whole(PythonChange((), BODY, up, down))
        return PythonChange(path.scopes if path else (), path.keys if path else None, up, down)


def _takes_message(name: str) -> bool:
    try:
        return takes_message(load_function(name, (MESSAGE,)))
    except ValueError:  # a mistake, which is reported elsewhere
        return False
