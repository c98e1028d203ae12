"""The shape of `conversions:` in gateway.yaml: the changes between two versions.

A change reads from the newer version to the older one, and runs both ways.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, WithJsonSchema

from gateway.config.shape import Method, NumberText, SectionModel, Some

STATUSES = r"^[45](?:[0-9][0-9]|xx)$"
PYTHON = r"^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_.]*$"


def _word(value: JsonValue) -> JsonValue:
    if isinstance(value, str | bool | int):
        return value
    raise ValueError("expected a text, a whole number, true or false")


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) else value


MapWord = Annotated[JsonValue, AfterValidator(_word)]
PythonName = Annotated[str, Field(pattern=PYTHON)]
Statuses = Annotated[
    str,
    BeforeValidator(_as_text),
    Field(pattern=STATUSES),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 400, "maximum": 599},
                {"type": "string", "pattern": STATUSES},
            ]
        }
    ),
]
TypeName = Literal["text", "number", "boolean", "integer"]
Many = Literal["first", "refuse"]


class RenameConfig(SectionModel):
    """The field is called otherwise, or lies elsewhere, in the older version."""

    field: str
    """The field of the newer version."""
    to: str
    """The field of the older version."""


class MapConfig(SectionModel):
    """The older version has other words for the same values."""

    field: str
    """The field, of either version."""
    values: Annotated[dict[str, MapWord], Field(min_length=1)]
    """What each value of the newer version is in the older one."""
    back: dict[str, MapWord] = Field(default_factory=dict)
    """What a value of the older version is in the newer one, where `values` does not tell."""
    unknown: Literal["refuse", "keep"] = "refuse"
    """What is done with other values, where they have no default."""
    default: "WordsConfig | None" = None
    """What other values become."""


class WordsConfig(SectionModel):
    """What the values become that a map does not speak of."""

    older: MapWord | None = None
    """In the older version."""
    newer: MapWord | None = None
    """In the newer version."""


class TypeConfig(SectionModel):
    """The older version has the same value as another type."""

    field: str
    """The field, of either version."""
    newer: TypeName
    """The type in the newer version."""
    older: TypeName
    """The type in the older version."""
    scale: Annotated[int, Field(ge=1, le=18), NumberText] | None = None
    """With one integer: how many decimal places the other has, of which it counts the last."""


class WrapConfig(SectionModel):
    """The older version has a list where the newer one has a single value."""

    field: str
    """The field, of either version."""
    many: Many = "first"
    """What becomes of a list of several: its first element, or it is refused."""


class UnwrapConfig(SectionModel):
    """The older version has a single value where the newer one has a list."""

    field: str
    """The field, of either version."""
    many: Many = "first"
    """What becomes of a list of several: its first element, or it is refused."""


class JoinConfig(SectionModel):
    """The older version joins in one text what the newer one holds in parts."""

    fields: Annotated[tuple[str, ...], Field(min_length=2)]
    """The parts, as fields of the newer version, in the order of the text."""
    into: str
    """The text, as a field of the older version."""
    separator: Annotated[str, Field(min_length=1)] = " "
    """What stands between two parts."""
    default: str = ""
    """What a part becomes that the text does not reach."""


class SplitConfig(SectionModel):
    """The older version holds in parts what the newer one holds as one text."""

    field: str
    """The text, as a field of the newer version."""
    into: Annotated[tuple[str, ...], Field(min_length=2)]
    """The parts, as fields of the older version, in the order of the text."""
    separator: Annotated[str, Field(min_length=1)] = " "
    """What stands between two parts."""
    default: str = ""
    """What a part becomes that the text does not reach."""


class DefaultConfig(SectionModel):
    """Only the newer version has the field."""

    field: str
    """The field of the newer version."""
    value: JsonValue
    """What the field is where the document comes from the older version."""


class RemoveConfig(SectionModel):
    """Only the older version has the field."""

    field: str
    """The field of the older version."""
    value: JsonValue = None
    """What the field is where the document comes from the newer version; without it, absent."""


class PythonConfig(SectionModel):
    """Python functions convert what data cannot describe: of a value, returning a value."""

    field: str | None = None
    """The field whose value they are given, of either version; without it, the whole object."""
    up: PythonName
    """The function that upgrades, as module:function."""
    down: PythonName
    """The function that downgrades."""


class ChangeConfig(SectionModel):
    """One change between two versions, read from the newer to the older; it runs both ways."""

    rename: RenameConfig | None = None
    """Call a field otherwise, or put it elsewhere."""
    map: MapConfig | None = None
    """Say values in other words."""
    type: TypeConfig | None = None
    """Hold a value as another type."""
    wrap: WrapConfig | None = None
    """Put a value into a list."""
    unwrap: UnwrapConfig | None = None
    """Take a value out of a list."""
    join: JoinConfig | None = None
    """Join parts into a text."""
    split: SplitConfig | None = None
    """Split a text into parts."""
    default: DefaultConfig | None = None
    """Leave out a field that only the newer version has."""
    remove: RemoveConfig | None = None
    """Add a field that only the older version has."""
    python: PythonConfig | None = None
    """Call Python functions."""


class AddedConfig(SectionModel):
    """Only one of the versions has it: the newer one for `default`, the older one for `remove`."""

    field: str
    """What it is called there."""
    value: str | None = None
    """What it is where the other version's comes without it; without a value, it is not added."""


class ParameterConfig(SectionModel):
    """One change of query parameters or header fields, read from the newer version to the older."""

    rename: RenameConfig | None = None
    """Call it otherwise."""
    map: MapConfig | None = None
    """Say values in other words."""
    type: TypeConfig | None = None
    """Write a value as another type."""
    default: AddedConfig | None = None
    """Leave out what only the newer version has."""
    remove: AddedConfig | None = None
    """Add what only the older version has."""


class ConversionConfig(SectionModel):
    """The reversible change between two adjacent versions, or a part of it."""

    between: tuple[str, str]
    """The two versions, the older one first."""
    changes: tuple[ChangeConfig, ...] = ()
    """The changes of bodies."""
    query: tuple[ParameterConfig, ...] = ()
    """The changes of query parameters."""
    headers: tuple[ParameterConfig, ...] = ()
    """The changes of header fields."""
    statuses: tuple[Statuses, ...] = ()
    """The error statuses whose bodies the changes apply to as well, such as 404 or 4xx."""
    on: Literal["requests", "responses", "errors", "both"] = "both"
    """What they apply to; `errors` are the responses of the statuses alone."""
    methods: Some[Method] | None = None
    """The methods of the requests; without it, all."""
    paths: Some[str] | None = None
    """The paths of the endpoints, as they are written there; without it, all."""
