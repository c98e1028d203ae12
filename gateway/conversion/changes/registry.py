"""The registry of all kinds of changes, and the models of list entries with one change each."""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from gateway.base.mistakes import Location, place
from gateway.base.model import Reason, SectionModel
from gateway.conversion import changes
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    ChangeSection,
    ParameterSection,
)
from gateway.conversion.changes.message_option import UnfitOption, unfit_policy
from gateway.conversion.changes.when import When
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.unfit import UnfitPolicy

S = TypeVar("S", bound=ChangeSection)


def _models(kind: type[S]) -> dict[str, type[S]]:
    names = [f"{changes.__name__}.{one.name}" for one in iter_modules(changes.__path__)]
    modules = [import_module(name) for name in names if name != __name__]
    found = (
        model
        for module in modules
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, kind) and vars(model).get("keyword")
    )
    return {model.keyword: model for model in sorted(found, key=lambda model: model.keyword)}


CHANGES: Final = _models(BodySection)  # type: ignore[type-abstract]  # it is not instantiated

PARAMETER_CHANGES: Final = _models(ParameterSection)  # type: ignore[type-abstract]
"""The model of every change of query parameters and header fields, by its keyword in gateway.yaml.

Changes of objects, such as `envelope`, do not exist for parameters, which are never objects."""


class _Built:
    """Validates one kind of change, and creates the validator of its model on first use.

    To create the validators of all models would take 0.2 s at each start.
    """

    def __init__(self, model: type[ChangeSection]) -> None:
        self._model = model

    def __get_pydantic_core_schema__(self, _: object, __: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, _: object, handler: Any) -> Any:
        # With a definitions schema, the model is defined once and not repeated at each use.
        return handler(core_schema.definitions_schema(TypeAdapter(self._model).core_schema, []))

    def _validate(self, value: object) -> object:
        # Validate JSON, as for the whole file. In strict mode, pydantic refuses a Python list for a
        # tuple.
        return self._model.model_validate_json(json.dumps(value))


def _describe(schema: dict[str, Any], entry: "type[ChangeEntry[Any]]") -> None:
    for key, one in schema["properties"].items():
        if key in entry.changes:
            one["description"] = entry.changes[key].__doc__


class ChangeEntry(SectionModel, Generic[S]):
    """An entry of a list of changes: one change by its name, and options for it."""

    model_config = ConfigDict(json_schema_extra=_describe)
    changes: ClassVar[Mapping[str, type[ChangeSection]]] = {}

    unfit: UnfitOption | None = None
    """The treatment of a value that the change cannot convert: the message is refused (`refuse`),
    the value stays unchanged (`keep`), or the field or list element is removed (`omit`). A mapping
    with `requests` and `responses` treats them differently. The default is `unfit` of the
    conversion."""
    allow_loss: Reason | None = None
    """The reason why the change may lose data. `check` lists its losses with this reason instead of
    warning about them. By default, `check` warns about them."""
    when: When | None = None
    """The condition under which the change applies, for each object. By default, it always
    applies."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler, /
    ) -> CoreSchema:
        # Declared as ordinary fields of the model, they would take three times as long to create at
        # each start.
        def field(model: type[ChangeSection]) -> core_schema.ModelField:
            named = core_schema.nullable_schema(
                handler.generate_schema(Annotated[Any, _Built(model)])
            )
            return core_schema.model_field(core_schema.with_default_schema(named, default=None))

        fields = {key: field(model) for key, model in cls.changes.items()}
        made: Any = handler(source)
        options = made["schema"]["fields"]
        return {**made, "schema": core_schema.model_fields_schema({**fields, **options})}

    def named(self) -> dict[str, S]:
        found = vars(self)
        given = sorted(self.model_fields_set & self.changes.keys())
        return {name: found[name] for name in given if found[name] is not None}

    def policy(self, at: Location) -> UnfitPolicy | None:
        return None if self.unfit is None else unfit_policy(self.unfit, place(at))

    def only(self, context: BuildContext) -> tuple[S, BuildContext] | None:
        named = self.named()
        if len(named) != 1:
            found = f"names {' and '.join(named)}" if named else "names no change"
            context.mistakes.add(
                f"{found}; an entry is one change, such as rename: {{ field: a, to: b }}"
            )
            return None
        ((name, section),) = named.items()
        return section, context.below(name)


class ChangeConfig(ChangeEntry[BodySection]):
    """One change of bodies between two versions, described from the newer version to the older one
    and applied in both directions. It has the name of exactly one change.
    """  # noqa: D205

    changes = CHANGES

    def compile(self, context: BuildContext) -> Change | None:
        """Return the change, or None after recording a mistake; `context` is that of the entry."""
        found = self.only(context)
        change = None if found is None else found[0].body_change(found[1])
        if change is not None and self.when is not None:
            change = self.when.applied(change, context.below("when"))
        if change is not None and self.allow_loss is not None:
            change = replace(change, allow_loss=self.allow_loss)
        policy = self.policy(context.mistakes.at)
        if change is None or policy is None:
            return change
        if change.whole and not policy.refuses:
            text = "is of the whole body, which can only be refused; remove it"
            context.mistakes.add(text, "unfit")
        return replace(change, unfit=policy)


class ParameterConfig(ChangeEntry[ParameterSection]):
    """One change of query parameters or header fields between two versions, described from the
    newer version to the older one and applied in both directions. It has the name of exactly one
    change.
    """  # noqa: D205

    changes = PARAMETER_CHANGES

    def compile(self, context: BuildContext) -> ParameterChange | None:
        found = self.only(context)
        change = None if found is None else found[0].parameter_change(found[1])
        if change is not None and self.when is not None:
            change = self.when.applied_to_parameter(change, context.below("when"))
        policy = self.policy(context.mistakes.at)
        if change is None or policy is None:
            return change
        return replace(change, unfit=policy)
