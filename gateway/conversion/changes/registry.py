"""The registry of all changes, and the models of the entries that hold one change each."""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pydantic import create_model

from gateway.base.model import SectionModel
from gateway.conversion import changes
from gateway.conversion.changes.change_section import BodySection, ChangeSection, ParameterSection

S = TypeVar("S", bound=ChangeSection)


def _models(kind: type[S]) -> dict[str, type[S]]:
    """Return the models of a kind in the modules of this package, by their keywords."""
    names = [f"{changes.__name__}.{one.name}" for one in iter_modules(changes.__path__)]
    modules = [import_module(name) for name in names if name != __name__]
    found = (
        model
        for module in modules
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, kind) and vars(model).get("keyword")
    )
    return {model.keyword: model for model in sorted(found, key=lambda model: model.keyword)}


CHANGES: Final = _models(BodySection)  # type: ignore[type-abstract]  # of which there are none
"""Every change of bodies, by its keyword in gateway.yaml."""

PARAMETER_CHANGES: Final = _models(ParameterSection)  # type: ignore[type-abstract]  # likewise
"""Every change of query parameters and header fields, by its keyword in gateway.yaml.

`envelope` and its like are of objects, which parameters are not; `link` is not needed, as Location,
Content-Location and Link are mapped without a change."""


class ChangeEntry(SectionModel, Generic[S]):
    """An entry of a list of changes: a mapping of one key, the name of the change."""

    def named(self) -> dict[str, S]:
        """Return the changes that the entry names, which is to be exactly one."""
        return {name: change for name, change in vars(self).items() if change is not None}


if TYPE_CHECKING:

    class ChangeConfig(ChangeEntry[BodySection]):
        """One change of bodies."""

    class ParameterConfig(ChangeEntry[ParameterSection]):
        """One change of query parameters or header fields."""

else:

    def _entry(name, about, models):
        fields = {key: (model | None, None) for key, model in models.items()}
        return create_model(name, __base__=ChangeEntry, __doc__=about, **fields)

    ChangeConfig = _entry(
        "ChangeConfig",
        "One change of bodies between two versions, read from the newer version to the older one;"
        " it runs both ways. Exactly one key is given.",
        CHANGES,
    )
    ParameterConfig = _entry(
        "ParameterConfig",
        "One change of query parameters or header fields between two versions, read from the newer"
        " version to the older one; it runs both ways. Exactly one key is given.",
        PARAMETER_CHANGES,
    )
