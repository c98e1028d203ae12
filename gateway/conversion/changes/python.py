"""`python`: two Python functions convert a value that no other kind of change can convert.

The functions are imported when the configuration is loaded.
"""

import importlib
import sys
from collections.abc import Callable
from functools import cache, partial
from hashlib import blake2b
from inspect import (
    isasyncgenfunction,
    isclass,
    iscoroutinefunction,
    isgeneratorfunction,
    isroutine,
    signature,
)
from pathlib import Path
from traceback import walk_tb
from typing import Annotated

from gateway.base.errors import FunctionError
from gateway.base.function_process import in_process
from gateway.base.mistakes import printable, suggest
from gateway.base.model import Seconds, matching
from gateway.conversion.change import Change, DirectedChange, in_arrays, whole_body
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    ParameterSection,
)
from gateway.conversion.conversion_error import ConversionError, one_value
from gateway.conversion.document import Document, JsonForm, JsonObject, holder_of, refuse
from gateway.conversion.field_path import Keys, Scope, Tokens, tokens_of
from gateway.conversion.message import Message, MessageView, message_of
from gateway.conversion.parameter_change import (
    LineStep,
    ParameterChange,
    ParameterLines,
    Spelling,
    rewritten,
    same_name,
)
from gateway.conversion.schema import ANYTHING, WIDE_TYPES, Flat, SchemaImage, wide
from gateway.conversion.steps import BODY
from gateway.convert import Refused

# The maximum length of a function's own reason and pointer.
_MOST_CHARACTERS = 200
PythonFunction = Callable[..., Document]
"""A function that converts a value. If it has the parameter MESSAGE, it also gets a MessageView."""
MESSAGE = "message"

_PYTHON = r"^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_.]*$"

PythonName = Annotated[str, matching(_PYTHON, "not a Python function; write module:function")]


def load_function(name: str) -> Callable[..., object]:
    """Import a function by its name in the form `module:function`.

    A process imports a module only once, so edits to a module take effect at a restart.

    Raises:
        ValueError: The function cannot be imported or called. The message explains the reason to
            the operator.
    """
    module, _, path = name.partition(":")
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"no module is called '{error.name}'; modules are searched on Python's"
            " path and in the folder of this file"
        ) from None
    except (Exception, SystemExit) as error:  # the module may raise anything
        raise ValueError(
            f"'{module}' cannot be imported: it raises {type(error).__name__}: {error}"
        ) from None
    for part in path.split("."):
        if not hasattr(found, part):
            functions = [n for n in dir(found) if n[0] != "_" and callable(getattr(found, n))]
            raise ValueError(f"'{module}' has no '{path}'; {suggest(part, functions)}")
        found = getattr(found, part)
    if not callable(found):
        raise ValueError(f"is a {type(found).__name__}, which cannot be called; name a function")
    _check_call(found)
    return found


def module_hash(name: str) -> str:
    """Return a hash of the source file of a function; empty if its module has no file.

    The hash is cached at the first call, because a module is imported only once.
    """
    return _hash_of(name.partition(":")[0])


@cache
def _hash_of(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    return "" if file is None else blake2b(Path(file).read_bytes(), digest_size=8).hexdigest()


def _check_call(found: Callable[..., object]) -> None:
    called = found if isroutine(found) or isclass(found) else type(found).__call__
    if iscoroutinefunction(called) or isasyncgenfunction(called):
        raise ValueError("is asynchronous, and its result is not awaited; define it with def only")
    if isgeneratorfunction(called):
        raise ValueError("yields values instead of returning one; use return")
    try:
        parameters = signature(found)
    except ValueError:  # some functions written in C have no signature
        return
    try:
        parameters.bind(None, **{name: None for name in parameters.parameters if name == MESSAGE})
    except TypeError as error:
        raise ValueError(f"cannot be called with a single value: {error}") from None


class _FunctionsSection(ChangeSection):
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

    def _functions(self, context: BuildContext) -> tuple[PythonFunction, PythonFunction] | None:
        up = context.mistakes.attempt(partial(load_function, self.up), "up")
        down = context.mistakes.attempt(partial(load_function, self.down), "down")
        return None if up is None or down is None else (up, down)


class PythonParameter(_FunctionsSection, ParameterSection):
    """Call Python functions, which get the string in a parameter and return another string."""

    keyword = "python"

    field: str
    """The query parameter or header field, which has the same name in both versions."""

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        name, functions = context.name(self.field, "field"), self._functions(context)
        return None if functions is None else call_for_parameter(name, *functions)


class Python(_FunctionsSection, BodySection):
    """Call Python functions, which get a value and return the other version's value."""

    keyword = "python"

    field: str | None = None
    """The field whose value is passed to the functions; the default is the whole object."""
    each: bool = True
    """Whether the functions are called for each element of a body that is an array (the default),
    or once for the whole body."""
    timeout: Seconds | None = None
    """The maximum time for one body, in seconds. The functions run in a separate process, which is
    killed after that time. Without it, the functions run in the process that serves requests and
    must not block."""

    pure: bool = False
    """Whether the functions always return equal results for equal values, so that entity tags stay
    strong. By default, entity tags become weak."""

    @property
    def varies(self) -> bool:
        return not self.pure

    @property
    def code(self) -> str:
        return "".join(map(module_hash, (self.up, self.down))) if self.pure else ""

    def seconds(self) -> float | None:
        return self.timeout

    def compile_body(self, context: BuildContext) -> Change | None:
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
            context.mistakes.add(
                "is only valid for functions that take only the value; remove it", "pure"
            )
        if not self.each:
            if path is not None:
                context.mistakes.add(
                    "is only valid for the whole body; remove it, or remove field", "each"
                )
            return whole_body(call_python((), BODY, up, down))
        return call_python(path.scopes if path else (), path.keys if path else None, up, down)


def _takes_message(name: str) -> bool:
    try:
        return takes_message(load_function(name))
    except ValueError:  # a mistake, which is reported elsewhere
        return False


def call_python(
    scopes: tuple[Scope, ...],
    field: Keys | None,
    upwards: PythonFunction,
    downwards: PythonFunction,
    *,
    in_patch: bool = False,
) -> Change:
    """Return a change that converts a value with two Python functions.

    The functions get a copy of the value, parsed completely and with fractions as Decimal. They are
    called for null, except in PATCH requests, but not for an absent field. If a function raises an
    exception, the document cannot be converted. For `Refused`, the client gets the reason of the
    function. For any other exception, the log shows the type and the source line of
    the exception, but not its message, which may quote the document.
    """
    patch = None
    if field not in (None, BODY) and not in_arrays(scopes) and not in_patch:
        patch = call_python(scopes, field, upwards, downwards, in_patch=True)
    return Change(
        scopes,
        ((),) if field is None else (field,),
        _calling(field, upwards, "up", in_patch),
        _calling(field, downwards, "down", in_patch),
        patch=patch,
    )


def _calling(
    field: Keys | None, function: PythonFunction, direction: str, in_patch: bool
) -> DirectedChange:
    given = takes_message(function)

    def step(fields: JsonObject, form: JsonForm) -> None:
        code = function
        if given:
            message = message_of(form) or Message()
            beside = {} if field in (None, BODY) else fields
            view = MessageView(direction, message, lambda: form.parse(beside))
            code = partial(code, message=view)
        if field is None:
            made = form.open(_made(code, fields, (), form))
            if not isinstance(made, dict):
                refuse("an object from the Python function", made)
            fields.clear()
            fields.update(made)
            return
        holder = holder_of(fields, field, form)
        if holder is None:
            return
        key = field[-1]
        keeps_null = in_patch or form.of_places
        if not keeps_null or form.open(holder[key]) is not None:
            holder[key] = _made(code, holder[key], field, form)

    def effect(flat: Flat, image: SchemaImage) -> object:
        image.misfit("a Python function may refuse a value")
        if field is None:
            return wide({"type": "object", "additionalProperties": True}, WIDE_TYPES)
        return image.value(flat, field, lambda _: ANYTHING, nulls=True)

    return DirectedChange(step, effect, one_value(field or ()))


def call_for_parameter(
    name: str, upwards: PythonFunction, downwards: PythonFunction
) -> ParameterChange:
    def calling(direction: str) -> LineStep:
        def step(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
            known = spelling.message
            view = MessageView(direction, known if isinstance(known, Message) else Message(), dict)
            up, down = (
                text_function(partial(code, message=view) if takes_message(code) else code)
                for code in (upwards, downwards)
            )
            change = rewritten(name, up, down)
            return (change.up if direction == "up" else change.down)(lines, spelling)

        return step

    return ParameterChange(same_name(name), calling("up"), calling("down"))


def takes_message(code: PythonFunction) -> bool:
    try:
        return MESSAGE in signature(code).parameters
    except (ValueError, TypeError):  # some functions written in C have no signature
        return False


def text_function(code: PythonFunction) -> Callable[[str], str]:
    """Return a function that requires a string as result, and raises ConversionError."""

    def called(text: str) -> str:
        made = _called(code, text, ())
        if not isinstance(made, str):
            cause = f"{_name(code)} returned {type(made).__name__}"
            raise ConversionError("the Python function did not return a string", (), cause)
        return made

    return called


def _called(code: PythonFunction, given: Document, keys: Keys) -> Document:
    try:
        return code(given)
    except Refused as error:
        reason = printable(error.reason[:_MOST_CHARACTERS]).strip() or FunctionError().reason
        place = (*keys, *_tokens(error.pointer, given))
        raise ConversionError(reason, place, f"{_name(code)} refused it: {reason}") from None
    except FunctionError as error:
        raise ConversionError(error.reason, keys, f"{_name(code)} {error.cause}") from None
    except BaseException as error:  # user code may raise anything, such as KeyboardInterrupt
        cause = f"{_name(code)} raised {type(error).__name__} at {_where(error)}"
        raise ConversionError("the Python function rejected the value", keys, cause) from error


def _tokens(pointer: str, value: Document) -> Tokens:
    """Return the location of a pointer in a value; empty if it is not a JSON Pointer."""
    text = printable(pointer[:_MOST_CHARACTERS])
    found: list[str | int] = []
    for token in tokens_of(text) if text.startswith("/") else ():
        if isinstance(value, list) and token.isdecimal():
            index = int(token)
            value = value[index] if index < len(value) else None
            found.append(index)
        else:
            value = value.get(token) if isinstance(value, dict) else value
            found.append(token)
    return tuple(found)


def _made(code: PythonFunction, value: Document, keys: Keys, form: JsonForm) -> Document:
    try:
        given = form.parse(value)
    except ConversionError as error:
        raise error.under(*keys) from None
    made = _called(code, given, keys)
    try:
        return form.take(made)
    except BaseException as error:  # methods of the returned object may raise anything
        cause = f"{_name(code)} returned a value that is not JSON: {error}"
        raise ConversionError(
            "the Python function did not return a JSON value", keys, cause
        ) from error


def _where(error: BaseException) -> str:
    *_, (frame, line) = walk_tb(error.__traceback__)
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{line}"


def _name(code: PythonFunction) -> str:
    code = code.func if isinstance(code, partial) else code
    return f"{code.__module__}:{getattr(code, '__qualname__', type(code).__name__)}"
