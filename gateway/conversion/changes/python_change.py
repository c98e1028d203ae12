"""Python: a change that two Python functions make, where no other operation describes it."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from traceback import walk_tb

from gateway.base.errors import FunctionError
from gateway.conversion.conversion_error import ConversionError, ErrorPlace, is_within
from gateway.conversion.document import Document, JsonForm, JsonObject, reach, refuse
from gateway.conversion.field_path import Keys, Scope, is_array
from gateway.conversion.message.message import Message, message_of
from gateway.conversion.message.message_view import MessageView
from gateway.conversion.parameter_change import MovedNames, ParameterLines, Rewritten, Spelling
from gateway.conversion.steps import BODY

PythonFunction = Callable[..., Document]
"""A function of a value; where it has the parameter MESSAGE, it is given a MessageView as well."""
MESSAGE = "message"
"""The name of the parameter by which a function takes the message."""


@dataclass(frozen=True, slots=True)
class PythonChange:
    """A pair of functions of a value, parsed to the leaves: of a field, or of the whole object.

    They are given a value of their own, null too but in a PATCH, with fractions as Decimal; where
    the field is absent, they are not called. If they raise, the document cannot be converted; the
    log holds the error's type and place, and not its text, which may quote the document.

    Attributes:
        field: where the value is; None for the object itself.
        upwards: returns the newer version's value for the older one's.
        downwards: the way back.
        in_patch: whether a null removes the field (RFC 7396), and so stays.
    """

    scopes: tuple[Scope, ...]
    field: Keys | None
    upwards: PythonFunction
    downwards: PythonFunction
    in_patch: bool = False
    # The directions whose function takes the message.
    _given: frozenset[str] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = {"up": self.upwards, "down": self.downwards}.items()
        found = frozenset(direction for direction, code in given if takes_message(code))
        object.__setattr__(self, "_given", found)

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field, or everything."""
        return ((),) if self.field is None else (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Call the function that upgrades."""
        self._call(self.upwards, fields, form, "up")

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Call the function that downgrades."""
        self._call(self.downwards, fields, form, "down")

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        """Return the value that the function was given, for any place in what it has made."""
        given = self.field or ()
        return given if is_within(place, given) else place

    def for_patch(self) -> "PythonChange":
        """Return the same change for what a PATCH holds; the elements of an array are whole."""
        of_field = self.field not in (None, BODY) and not any(map(is_array, self.scopes))
        return dataclasses.replace(self, in_patch=of_field)

    def _call(
        self, code: PythonFunction, fields: JsonObject, form: JsonForm, direction: str
    ) -> None:
        if direction in self._given:
            message = message_of(form) or Message()
            beside = {} if self.field in (None, BODY) else fields
            view = MessageView(direction, message, lambda: form.parse(beside))
            code = partial(code, message=view)
        if self.field is None:
            made = form.open(_made(code, fields, (), form))
            if not isinstance(made, dict):
                refuse("an object from the Python function", made)
            fields.clear()
            fields.update(made)
            return
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        keeps_null = self.in_patch or form.of_places
        if not keeps_null or form.open(holder[key]) is not None:
            holder[key] = _made(code, holder[key], self.field, form)


@dataclass(frozen=True, slots=True)
class PythonParameter:
    """A pair of functions of the text of a parameter, which return another text.

    Attributes:
        name: The name of the parameter in both versions.
        upwards: returns the newer version's text for the older one's.
        downwards: the way back.
    """

    name: str
    upwards: PythonFunction
    downwards: PythonFunction

    @property
    def moved(self) -> tuple[MovedNames, ...]:
        """No names: the parameter has the same one in both versions."""
        return ()

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with the text that the function for upgrades returns."""
        return self._rewritten("up", spelling).up(lines, spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        """Return the lines with the text that the function for downgrades returns."""
        return self._rewritten("down", spelling).down(lines, spelling)

    def _rewritten(self, direction: str, spelling: Spelling) -> Rewritten:
        known = spelling.message
        view = MessageView(direction, known if isinstance(known, Message) else Message(), dict)
        up, down = (
            text_function(partial(code, message=view) if takes_message(code) else code)
            for code in (self.upwards, self.downwards)
        )
        return Rewritten(self.name, up, down)


def takes_message(code: PythonFunction) -> bool:
    """Return whether a function has the parameter MESSAGE."""
    try:
        return MESSAGE in signature(code).parameters
    except (ValueError, TypeError):  # some that are written in C have no signature
        return False


def text_function(code: PythonFunction) -> Callable[[str], str]:
    """Return what calls a function with a text; it raises ConversionError."""

    def called(text: str) -> str:
        made = _called(code, text, ())
        if not isinstance(made, str):
            cause = f"{_name(code)} returned {type(made).__name__}"
            raise ConversionError("the Python function returns no text", (), cause)
        return made

    return called


def _called(code: PythonFunction, given: Document, keys: Keys) -> Document:
    try:
        return code(given)
    except FunctionError as error:
        raise ConversionError(error.reason, keys, f"{_name(code)} {error.cause}") from None
    except BaseException as error:  # whatever code of others raises, as KeyboardInterrupt
        cause = f"{_name(code)} raised {type(error).__name__} at {_where(error)}"
        raise ConversionError("the Python function refuses it", keys, cause) from error


def _made(code: PythonFunction, value: Document, keys: Keys, form: JsonForm) -> Document:
    try:
        given = form.parse(value)
    except ConversionError as error:
        raise error.under(*keys) from None
    made = _called(code, given, keys)
    try:
        return form.take(made)
    except BaseException as error:  # also of methods of the object
        cause = f"{_name(code)} returned what JSON cannot hold: {error}"
        raise ConversionError("the Python function returns no JSON value", keys, cause) from error


def _where(error: BaseException) -> str:
    *_, (frame, line) = walk_tb(error.__traceback__)
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{line}"


def _name(code: PythonFunction) -> str:
    code = code.func if isinstance(code, partial) else code
    return f"{code.__module__}:{getattr(code, '__qualname__', type(code).__name__)}"
