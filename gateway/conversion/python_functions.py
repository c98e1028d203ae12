"""Python functions that a configuration names, found when it is loaded."""

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
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

from gateway.base.mistakes import suggest


def load_function(name: str, given: Sequence[str] = ()) -> Callable[..., object]:
    """Return the function that `module:function` names.

    A module is imported once in a process, so what is changed in one takes effect at a restart.

    Args:
        given: The parameters beside the value that the function may have.

    Raises:
        ValueError: There is none; its text is the reason, for the operator.
    """
    module, _, path = name.partition(":")
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"no module is called '{error.name}'; modules are looked for on Python's path and in"
            " the folder of this file"
        ) from None
    except (Exception, SystemExit) as error:  # whatever code of others raises
        raise ValueError(
            f"'{module}' cannot be imported: it raises {type(error).__name__}: {error}"
        ) from None
    for part in path.split("."):
        if not hasattr(found, part):
            raise ValueError(f"'{module}' has no '{path}'; {suggest(part, _functions(found))}")
        found = getattr(found, part)
    if not callable(found):
        raise ValueError(f"is a {type(found).__name__}, which cannot be called; name a function")
    _check(found, given)
    return found


def module_hash(name: str) -> str:
    """Return a hash of the module that `module:function` names; empty where it has no file.

    It is that of the first time, as the module is imported once.
    """
    return _hash_of(name.partition(":")[0])


@cache
def _hash_of(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    return "" if file is None else blake2b(Path(file).read_bytes(), digest_size=8).hexdigest()


def _check(found: Callable[..., object], given: Sequence[str]) -> None:
    called = found if isroutine(found) or isclass(found) else type(found).__call__
    if iscoroutinefunction(called) or isasyncgenfunction(called):
        raise ValueError("is asynchronous, and its result is not awaited; write it with def alone")
    if isgeneratorfunction(called):
        raise ValueError("yields values, and one is taken; write it with return")
    try:
        parameters = signature(found)
    except ValueError:  # some functions that are written in C have none
        return
    try:
        parameters.bind(None, **{name: None for name in given if name in parameters.parameters})
    except TypeError as error:
        raise ValueError(f"cannot be called with one value alone: {error}") from None


def _functions(found: object) -> list[str]:
    return [name for name in dir(found) if name[0] != "_" and callable(getattr(found, name))]


def look_in(folder: Path) -> None:
    """Add a folder to those where modules are looked for, behind all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
