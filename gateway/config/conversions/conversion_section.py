"""The shape of an entry of `conversions:` in gateway.yaml: changes, and where they apply."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from gateway.config.changes.change_list import ChangeConfig, ParameterConfig
from gateway.config.shape import Method, SectionModel, Some, matching

_STATUSES = r"^[45](?:[0-9][0-9]|xx)$"


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) else value


Statuses = Annotated[
    str,
    BeforeValidator(_as_text),
    matching(_STATUSES, "not an error status; write one such as 404, or 4xx for all of them"),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 400, "maximum": 599},
                {"type": "string", "pattern": _STATUSES},
            ]
        }
    ),
]


class ConversionConfig(SectionModel):
    """The reversible difference between two adjacent versions, or a part of it."""

    between: tuple[str, str]
    """The two versions that the conversion is between, the older one first."""
    changes: tuple[ChangeConfig, ...] = ()
    """The changes of bodies, in the order that upgrades a document; a downgrade runs backwards."""
    query: tuple[ParameterConfig, ...] = ()
    """The changes of query parameters, in the order that upgrades a request."""
    headers: tuple[ParameterConfig, ...] = ()
    """The changes of header fields, in the order that upgrades a message."""
    statuses: tuple[Statuses, ...] = ()
    """The error statuses, such as 404 or 4xx, that the conversion applies to beside success."""
    on: Literal["requests", "responses", "errors", "both"] = "both"
    """The messages it applies to; `errors` are responses of `statuses`. The default is both."""
    methods: Some[Method] | None = None
    """The methods of the requests that the conversion applies to; without it, all methods."""
    paths: Some[str] | None = None
    """The endpoints that the conversion applies to, by their `path`; without it, all endpoints."""
