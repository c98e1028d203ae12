"""Python: a change that two Python functions make, where no other operation describes it."""

from collections.abc import Callable
from dataclasses import dataclass
from traceback import walk_tb

from gateway.core.conversion.document import (
    ConversionError,
    Document,
    JsonForm,
    JsonObject,
    reach,
    refuse,
)
from gateway.core.conversion.field_path import Keys, Scope, pointer

PythonFunction = Callable[[Document], Document]


@dataclass(frozen=True, slots=True)
class PythonChange:
    """A pair of functions of a value, parsed to the leaves: of a field, or of the whole object.

    They are given a value of their own, null too, with fractions as Decimal; where the field is
    absent, they are not called. If they raise, the document cannot be converted; the
    log holds the error's type and place, and not its text, which may quote the document.

    Attributes:
        field: where the value is; None for the object itself.
        upwards: returns the newer version's value for the older one's.
        downwards: the way back.
    """

    scopes: tuple[Scope, ...]
    field: Keys | None
    upwards: PythonFunction
    downwards: PythonFunction

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field, or everything."""
        return ((),) if self.field is None else (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Call the function that upgrades."""
        self._call(self.upwards, fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Call the function that downgrades."""
        self._call(self.downwards, fields, form)

    def for_patch(self) -> "PythonChange":
        """Return the same change: the functions are given what the PATCH request holds."""
        return self

    def _call(self, code: PythonFunction, fields: JsonObject, form: JsonForm) -> None:
        if self.field is None:
            made = form.open(_made(code, fields, (), form))
            if not isinstance(made, dict):
                refuse("an object from the Python function", made)
            fields.clear()
            fields.update(made)
            return
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is not None and key in holder:
            holder[key] = _made(code, holder[key], self.field, form)


def _made(code: PythonFunction, value: Document, keys: Keys, form: JsonForm) -> Document:
    try:
        given = form.parse(value)
    except ConversionError as error:
        raise error.under(*keys) from None
    try:
        made = code(given)
    except (Exception, SystemExit) as error:  # whatever code of others raises
        cause = f"{_name(code)} raised {type(error).__name__} at {_where(error)}"
        raise ConversionError("the Python function refuses it", pointer(*keys), cause) from error
    try:
        return form.take(made)
    except (ValueError, TypeError, RecursionError) as error:
        cause = f"{_name(code)} returned what JSON cannot hold: {error}"
        raise ConversionError(
            "the Python function returns no JSON value", pointer(*keys), cause
        ) from error


def _where(error: BaseException) -> str:
    *_, (frame, line) = walk_tb(error.__traceback__)
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{line}"


def _name(code: PythonFunction) -> str:
    return f"{code.__module__}:{getattr(code, '__qualname__', type(code).__name__)}"
