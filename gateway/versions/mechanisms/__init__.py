"""The mechanisms: each module has a model and its reader.

A new module needs no registration: `MECHANISMS` finds every model with a key `in`.
"""

from functools import reduce
from importlib import import_module
from operator import or_
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

from pydantic import Field

from gateway.versions.reader import Mechanism


def _models() -> dict[str, type[Mechanism]]:
    modules = [import_module(f"{__name__}.{one.name}") for one in iter_modules(__path__)]
    found = {model for module in modules for model in vars(module).values() if _is_one(model)}
    named = {get_args(model.model_fields["in_"].annotation)[0]: model for model in found}
    return dict(sorted(named.items()))


def _is_one(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, Mechanism) and "in_" in model.model_fields


MECHANISMS: Final = _models()

if TYPE_CHECKING:
    AnyMechanism = Mechanism
else:
    AnyMechanism = Annotated[reduce(or_, MECHANISMS.values()), Field(discriminator="in_")]
