"""Python functions that gateway.yaml names, imported when the configuration is loaded."""

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
            raise ValueError(f"'{module}' has no '{path}'; {suggest(part, _functions(found))}")
        found = getattr(found, part)
    if not callable(found):
        raise ValueError(f"is a {type(found).__name__}, which cannot be called; name a function")
    _check(found, given)
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


def _check(found: Callable[..., object], given: Sequence[str]) -> None:
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
        parameters.bind(None, **{name: None for name in given if name in parameters.parameters})
    except TypeError as error:
        raise ValueError(f"cannot be called with a single value: {error}") from None


def _functions(found: object) -> list[str]:
    return [name for name in dir(found) if name[0] != "_" and callable(getattr(found, name))]


def look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
