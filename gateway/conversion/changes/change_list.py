"""The lists of all changes, and the models of the entries that hold one change each.

The module of a change is imported when rules name the change: most rules have few of them.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from gateway.base.model import Later, SectionModel, imported
from gateway.conversion.changes.change_section import BodySection, ChangeSection, ParameterSection

S = TypeVar("S", bound=ChangeSection)


class ChangeModels(Mapping[str, type[S]]):
    """The models of changes, by their keys in gateway.yaml; a model is imported when it is taken.

    Args:
        places: the module in this folder and the class, as in `wrap_section:WrapConfig`.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, key: str) -> type[S]:
        model: type[S] = imported(f"gateway.conversion.changes.{self._places[key]}")
        return model

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


# The changes of values: bodies and parameters have them alike.
_OF_BOTH = {
    "map": "map_section:MapConfig",
    "type": "type_section:TypeConfig",
    "multiply": "multiply_section:MultiplyConfig",
    "divide": "multiply_section:DivideConfig",
    "round": "round_section:RoundConfig",
    "time": "time_section:TimeConfig",
    "money": "money_section:MoneyConfig",
    "affix": "affix_section:AffixConfig",
    "invert": "invert_section:InvertConfig",
    "case": "case_section:CaseConfig",
}
CHANGES: Final = ChangeModels[BodySection](
    {
        "rename": "rename_section:RenameConfig",
        **_OF_BOTH,
        "key_case": "case_section:KeyCaseConfig",
        "keys": "keys_section:KeysConfig",
        "entries": "entries_section:EntriesConfig",
        "index": "entries_section:IndexConfig",
        "link": "link_section:LinkConfig",
        "omit_null": "omit_null_section:OmitNullConfig",
        "fill_null": "omit_null_section:FillNullConfig",
        "wrap": "wrap_section:WrapConfig",
        "unwrap": "wrap_section:UnwrapConfig",
        "join": "join_section:JoinConfig",
        "split": "join_section:SplitConfig",
        "join_list": "join_list_section:JoinListConfig",
        "split_list": "join_list_section:SplitListConfig",
        "envelope": "envelope_section:EnvelopeConfig",
        "extract": "envelope_section:ExtractConfig",
        "flatten": "flatten_section:FlattenConfig",
        "nest": "flatten_section:NestConfig",
        "spread": "spread_section:SpreadConfig",
        "collect": "spread_section:CollectConfig",
        "use": "use_section:UseConfig",
        "to_header": "to_header_section:ToHeaderConfig",
        "from_header": "to_header_section:FromHeaderConfig",
        "to_query": "to_query_section:ToQueryConfig",
        "from_query": "to_query_section:FromQueryConfig",
        "default": "default_section:DefaultConfig",
        "remove": "default_section:RemoveConfig",
        "python": "python_section:PythonConfig",
    }
)
"""Every change of bodies, by its key in gateway.yaml. A change is added here or, where parameters
have it as well, to those of both or of parameters, too."""

PARAMETER_CHANGES: Final = ChangeModels[ParameterSection](
    {
        "rename": "rename_section:RenameParameterConfig",
        **_OF_BOTH,
        "wrap": "wrap_section:WrapParameterConfig",
        "unwrap": "wrap_section:UnwrapParameterConfig",
        "join": "join_section:JoinParameterConfig",
        "split": "join_section:SplitParameterConfig",
        "join_list": "join_list_section:JoinListParameterConfig",
        "split_list": "join_list_section:SplitListParameterConfig",
        "default": "default_section:DefaultParameterConfig",
        "remove": "default_section:RemoveParameterConfig",
        "python": "python_section:PythonParameterConfig",
        "paging": "paging_section:PagingConfig",
        "sort": "sort_section:SortConfig",
    }
)
"""Every change of query parameters and header fields: those of bodies that they have as well, and
those that they have alone. `envelope` and its like are of objects, which parameters are not; `link`
is not needed, as Location, Content-Location and Link are mapped without a change."""


def _describe(schema: dict[str, Any], entry: "type[ChangeEntry]") -> None:
    schema["description"] = entry.description
    for key, one in schema["properties"].items():
        one["description"] = entry.changes[key].__doc__


class ChangeEntry(SectionModel):
    """An entry of a list of changes: a mapping of one key, the name of the change.

    Attributes:
        changes: the changes that the entries of a list can name.
        description: what an entry is, in the JSON Schema.
    """

    model_config = ConfigDict(json_schema_extra=_describe)
    changes: ClassVar[ChangeModels[Any]]
    description: ClassVar[str]

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler, /
    ) -> CoreSchema:
        # As fields of the model, they took three times as long to make, at each start.
        def field(key: str) -> core_schema.ModelField:
            change = Annotated[Any, Later(partial(cls.changes.__getitem__, key))]
            named = core_schema.nullable_schema(handler.generate_schema(change))
            return core_schema.model_field(core_schema.with_default_schema(named, default=None))

        fields = {key: field(key) for key in cls.changes}
        model: Any = handler(source)
        return {**model, "schema": core_schema.model_fields_schema(fields)}


class _OfSections(Generic[S]):
    def named(self) -> dict[str, S]:
        """Return the changes that the entry names, which is to be exactly one."""
        return {name: change for name, change in vars(self).items() if change is not None}


class ChangeConfig(ChangeEntry, _OfSections[BodySection]):
    """An entry of a list of changes of bodies."""

    changes = CHANGES
    description = (
        "One change of bodies between two versions, read from the newer version to the older one;"
        " it runs both ways. Exactly one key is given."
    )


class ParameterConfig(ChangeEntry, _OfSections[ParameterSection]):
    """An entry of a list of changes of query parameters or of header fields."""

    changes = PARAMETER_CHANGES
    description = (
        "One change of query parameters or header fields between two versions, read from the newer"
        " version to the older one; it runs both ways. Exactly one key is given."
    )
