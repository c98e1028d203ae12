"""The registry of all changes, and the models of the entries that hold one change each."""

import json
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

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


class _Built:
    """Validates a change by its model, whose validator is built when a file has such a change.

    Those of all changes take 0.2 s at each start.
    """

    def __init__(self, model: type[ChangeSection]) -> None:
        self._model = model

    def __get_pydantic_core_schema__(self, _: object, __: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, _: object, handler: Any) -> Any:
        # As an inner schema: a model that is not is written out at each of its uses.
        return handler(core_schema.definitions_schema(TypeAdapter(self._model).core_schema, []))

    def _validate(self, value: object) -> object:
        # As JSON, like the whole file: a strict tuple is no list of Python.
        return self._model.model_validate_json(json.dumps(value))


def _describe(schema: dict[str, Any], entry: "type[ChangeEntry[Any]]") -> None:
    for key, one in schema["properties"].items():
        one["description"] = entry.changes[key].__doc__


class ChangeEntry(SectionModel, Generic[S]):
    """An entry of a list of changes: a mapping of one key, the name of the change.

    Attributes:
        changes: The changes that the entries of a list can name.
    """

    model_config = ConfigDict(json_schema_extra=_describe)
    changes: ClassVar[Mapping[str, type[ChangeSection]]] = {}

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler, /
    ) -> CoreSchema:
        # As fields of the model, they took three times as long to make, at each start.
        def field(model: type[ChangeSection]) -> core_schema.ModelField:
            named = core_schema.nullable_schema(
                handler.generate_schema(Annotated[Any, _Built(model)])
            )
            return core_schema.model_field(core_schema.with_default_schema(named, default=None))

        fields = {key: field(model) for key, model in cls.changes.items()}
        made: Any = handler(source)
        return {**made, "schema": core_schema.model_fields_schema(fields)}

    def named(self) -> dict[str, S]:
        """Return the changes that the entry names, which is to be exactly one."""
        return {name: change for name, change in vars(self).items() if change is not None}


class ChangeConfig(ChangeEntry[BodySection]):
    """One change of bodies between two versions, read from the newer version to the older one; it
    runs both ways. Exactly one key is given.
    """  # noqa: D205

    changes = CHANGES


class ParameterConfig(ChangeEntry[ParameterSection]):
    """One change of query parameters or header fields between two versions, read from the newer
    version to the older one; it runs both ways. Exactly one key is given.
    """  # noqa: D205

    changes = PARAMETER_CHANGES
