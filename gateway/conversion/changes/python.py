"""`python`: two Python functions convert what no other change describes."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from traceback import walk_tb
from typing import Annotated

from gateway.base.errors import FunctionError
from gateway.base.function_process import in_process
from gateway.base.model import Seconds, matching
from gateway.conversion.change import Change, Whole
from gateway.conversion.changes.build_context import BodyContext, BuildContext, ParameterContext
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
)
from gateway.conversion.conversion_error import ConversionError, ErrorPlace, is_within
from gateway.conversion.document import Document, JsonForm, JsonObject, reach, refuse
from gateway.conversion.field_path import Keys, Scope, is_array
from gateway.conversion.message import Message, MessageView, message_of
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterChange,
    ParameterLines,
    Rewritten,
    Spelling,
)
from gateway.conversion.python_functions import load_function, module_hash
from gateway.conversion.schema import ANYTHING, Flat, SchemaImage, Width, wide
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
        return ((),) if self.field is None else (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        self._call(self.upwards, fields, form, "up")

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self._call(self.downwards, fields, form, "down")

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        given = self.field or ()
        return given if is_within(place, given) else place

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        image.refusals.append("a Python function may refuse a value")
        if self.field is None:
            return wide({"type": "object", "additionalProperties": True}, Width.TYPES)
        return image.value(flat, self.field, lambda _: ANYTHING, nulls=True)

    def for_patch(self) -> "PythonChange":
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
    def names(self) -> tuple[MovedNames, ...]:
        return (MovedNames((self.name,), (self.name,)),)

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        return self._rewritten("up", spelling).up(lines, spelling)

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
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
        return True

    @property
    def needs_message(self) -> bool:
        return any(map(_takes_message, (self.up, self.down)))

    def losses(self) -> Iterable[Loss]:
        return ()

    def _functions(self, context: BuildContext) -> tuple[PythonFunction, PythonFunction] | None:
        up = context.attempt(partial(load_function, self.up, (MESSAGE,)), "up")
        down = context.attempt(partial(load_function, self.down, (MESSAGE,)), "down")
        return None if up is None or down is None else (up, down)


class PythonParameterConfig(_FunctionsSection, ParameterSection):
    """Call Python functions, which are given the text of a parameter and return another text."""

    keyword = "python"

    field: str
    """The query parameter or header field, which has the same name in both versions."""

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        name, functions = context.name(self.field, "field"), self._functions(context)
        return None if functions is None else PythonParameter(name, *functions)


class PythonConfig(_FunctionsSection, BodySection):
    """Call Python functions, which get a value and return the other version's value."""

    keyword = "python"

    field: str | None = None
    """The field whose value the functions get; the default is the whole object."""
    each: bool = True
    """Whether the functions get each element of an array body (the default), or the whole body."""
    timeout: Seconds | None = None
    """The longest time for one body, in seconds. The functions run in a separate process, which is
    killed after that time. Without it, they run in the process that serves requests and must not
    block."""

    pure: bool = False
    """Whether equal values always have equal results, so that entity tags stay strong. By default,
    they are weak."""

    @property
    def varies(self) -> bool:
        return not self.pure

    @property
    def code(self) -> str:
        return "".join(map(module_hash, (self.up, self.down))) if self.pure else ""

    def seconds(self) -> float | None:
        return self.timeout

    def body_change(self, context: BodyContext) -> Change | None:
        path = None if self.field is None else context.path(self.field, "field")
        functions = self._functions(context)
        if functions is None or (path is None and self.field is not None):
            return None
        up, down = functions
        if self.timeout is not None:
            up, down = (
                in_process(name, function, self.timeout)
                for name, function in ((self.up, up), (self.down, down))
            )
        if self.pure and self.needs_message:
            context.complain("goes with functions of the value alone; remove it", "pure")
        if not self.each:
            if path is not None:
                context.complain("goes with the whole body; remove it, or field", "each")
            return Whole(PythonChange((), BODY, up, down))
        return PythonChange(path.scopes if path else (), path.keys if path else None, up, down)


def _takes_message(name: str) -> bool:
    try:
        return takes_message(load_function(name, (MESSAGE,)))
    except ValueError:  # a mistake, which is reported elsewhere
        return False
