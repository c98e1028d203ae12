"""The shape of an entry of `examples:` of a conversion: one body, as both versions have it."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from gateway.base.model import SectionModel, matching

ExampleOperation = Annotated[
    str,
    matching(
        r"^[A-Z]+(-[A-Z]+)* /\S*$",
        "not an operation; write a method and the path of an endpoint, as in GET /orders/{id}",
    ),
]


class ExampleMessageConfig(SectionModel):
    """What surrounds the body of an example."""

    headers: Mapping[str, str] = Field(default_factory=dict)
    """The header fields of the message, by name."""
    query: str | None = None
    """The query of the request, as in `page=2&size=10`."""


class ExampleConfig(SectionModel):
    """A body as both versions have it, which `check` converts both ways."""

    older: JsonValue
    """The body of the older version: any JSON, written as YAML."""
    newer: JsonValue
    """The body of the newer version: any JSON, written as YAML."""
    older_message: ExampleMessageConfig = ExampleMessageConfig()
    """What surrounds the body in the older version, where a change moves values from there."""
    newer_message: ExampleMessageConfig = ExampleMessageConfig()
    """What surrounds the body in the newer version, where a change moves values from there."""
    direction: Literal["up", "down", "both"] = "both"
    """The conversion that is proven: up to the newer version, down to the older one, or both. The
    default is both."""
    operation: ExampleOperation | None = None
    """A method and the path of an endpoint, as it is written there. All conversions between the two
    versions that apply to it are proven together; without it, only the one with the example."""
    status: Annotated[int, Field(ge=100, le=599)] | None = None
    """The status of the answer that has the body. Without it, the body is that of an answer 200 to
    GET, and of a request with any other method."""
