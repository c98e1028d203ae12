"""The registry of mechanisms: every model of this package, by what `in` says."""

from functools import reduce
from importlib import import_module
from operator import or_
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

from pydantic import Field

from gateway.versions import mechanisms
from gateway.versions.mechanisms.mechanism import MechanismConfig


def _models() -> dict[str, type[MechanismConfig]]:
    names = [f"{mechanisms.__name__}.{one.name}" for one in iter_modules(mechanisms.__path__)]
    modules = [import_module(name) for name in names if name != __name__]
    found = {model for module in modules for model in vars(module).values() if _is_one(model)}
    named = {get_args(model.model_fields["in_"].annotation)[0]: model for model in found}
    return dict(sorted(named.items()))


def _is_one(model: Any) -> bool:
    return (
        isinstance(model, type)
        and issubclass(model, MechanismConfig)
        and "in_" in model.model_fields
    )


MECHANISMS: Final = _models()
"""The model of every mechanism, by its name."""

if TYPE_CHECKING:
    ReaderConfig = MechanismConfig
else:
    ReaderConfig = Annotated[reduce(or_, MECHANISMS.values()), Field(discriminator="in_")]
