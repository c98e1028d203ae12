"""The list of all changes, and the models of the entries that hold one change each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pydantic import Field, create_model

from gateway.config.changes.change_section import BodySection, ChangeSection, ParameterSection
from gateway.config.changes.default_section import DefaultConfig, RemoveConfig
from gateway.config.changes.join_section import JoinConfig, SplitConfig
from gateway.config.changes.map_section import MapConfig
from gateway.config.changes.python_section import PythonConfig
from gateway.config.changes.rename_section import RenameConfig
from gateway.config.changes.round_section import RoundConfig
from gateway.config.changes.shapes.envelope_section import EnvelopeConfig, ExtractConfig
from gateway.config.changes.shapes.join_list_section import JoinListConfig, SplitListConfig
from gateway.config.changes.shapes.use_section import UseConfig
from gateway.config.changes.type_section import TypeConfig
from gateway.config.changes.values.affix_section import AffixConfig
from gateway.config.changes.values.case_section import CaseConfig, KeyCaseConfig
from gateway.config.changes.values.invert_section import InvertConfig
from gateway.config.changes.values.money_section import MoneyConfig
from gateway.config.changes.values.time_section import TimeConfig
from gateway.config.changes.wrap_section import UnwrapConfig, WrapConfig
from gateway.config.shape import SectionModel

CHANGES: Final[Mapping[str, type[BodySection]]] = {
    "rename": RenameConfig,
    "map": MapConfig,
    "type": TypeConfig,
    "round": RoundConfig,
    "time": TimeConfig,
    "money": MoneyConfig,
    "affix": AffixConfig,
    "invert": InvertConfig,
    "case": CaseConfig,
    "key_case": KeyCaseConfig,
    "wrap": WrapConfig,
    "unwrap": UnwrapConfig,
    "join": JoinConfig,
    "split": SplitConfig,
    "join_list": JoinListConfig,
    "split_list": SplitListConfig,
    "envelope": EnvelopeConfig,
    "extract": ExtractConfig,
    "use": UseConfig,
    "default": DefaultConfig,
    "remove": RemoveConfig,
    "python": PythonConfig,
}
"""Every change, by its key in gateway.yaml. A change is added here, and nowhere else."""

PARAMETER_CHANGES: Final[Mapping[str, type[ParameterSection]]] = {
    name: form for name, change in CHANGES.items() if (form := change.parameter_form()) is not None
}
"""The changes that query parameters and header fields have as well."""

S = TypeVar("S", bound=ChangeSection)


class ChangeEntry(SectionModel, Generic[S]):
    """An entry of a list of changes: a mapping of one key, the name of the change."""

    def named(self) -> dict[str, S]:
        """Return the changes that the entry names, which is to be exactly one."""
        return {name: change for name, change in self if change is not None}


def _entry(name: str, doc: str, changes: Mapping[str, type[ChangeSection]]) -> type[SectionModel]:
    fields: dict[str, Any] = {
        key: (change | None, Field(default=None, description=change.__doc__))
        for key, change in changes.items()
    }
    return create_model(name, __base__=ChangeEntry, __doc__=doc, **fields)


# A type checker cannot see models that are made of a table.
if TYPE_CHECKING:
    ChangeConfig = ChangeEntry[BodySection]
    ParameterConfig = ChangeEntry[ParameterSection]
else:
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
