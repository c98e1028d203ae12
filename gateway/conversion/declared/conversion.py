"""The shape of an entry of `conversions:` in gateway.yaml: changes, and where they apply."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, JsonValue, Strict, Tag, WithJsonSchema

from gateway.base.model import Method, NumberText, OneOrSome, SectionModel, Some, matching
from gateway.conversion.changes.registry import ChangeConfig, ParameterConfig

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


Status = Annotated[int, Field(ge=200, le=599), NumberText]


_EventName = Annotated[
    str, matching(r"^[^\r\n]+$", "not the name of an event; write it in one line")
]


class StatusConfig(SectionModel):
    """A status of answers that differs between the two versions."""

    newer: Status
    """The status of answers in the newer version, such as 201."""
    older: Status
    """The status of answers in the older version, such as 200."""


class RefuseConfig(SectionModel):
    """How an operation is refused that the other version lacks."""

    status: Annotated[int, Field(ge=400, le=599), NumberText] = 404
    """The status of the answer, such as 410. The default is 404."""
    detail: str = ""
    """The sentence that says why, and what to do instead. By default, it is a usual one, or that of
    the version's `errors`."""
    code: str | Annotated[int, Strict()] | None = None
    """The code of the refusal, which comes before that of the version's `errors`. By default, it is
    operation_missing, or what `errors` have for that."""


class OperationConfig(SectionModel):
    """An operation that has another method, path or status in the older version, or is missing."""

    newer: str | None = None
    """The method and the path that the operation has in the newer version, such as
    `POST /payments`; a path alone is for all methods. Without it, the newer version lacks it."""
    older: str | None = None
    """The method and the path that the operation has in the older version, such as `POST /pay` or
    `GET /find?id={id}`. Without it, the older version lacks it."""
    status: OneOrSome[StatusConfig, StatusConfig] | None = None
    """The status of answers that differs, such as `{ newer: 201, older: 200 }`, or a list of them.
    By default, none does."""
    request_body: Literal["newer", "older"] | None = None
    """The version whose requests alone have a body: newer or older. It is made of `{}` by the
    changes where the other version's requests have none. By default, both may have one."""
    service: str | None = None
    """The service that answers what one version lacks; it speaks the version that has it."""
    refuse: RefuseConfig | None = None
    """The answer to what one version lacks, where no service answers it."""


def _named_or_declared(value: object) -> str:
    return "named" if isinstance(value, str) else "declared"


OperationEntry = Annotated[
    Annotated[str, Tag("named")] | Annotated[OperationConfig, Tag("declared")],
    Discriminator(_named_or_declared),
]


class FormsConfig(SectionModel):
    """How forms of the clients of one version become JSON for the service of the other."""

    version: Literal["newer", "older"]
    """The version that takes forms, application/x-www-form-urlencoded: newer or older."""
    numbers: tuple[str, ...] = ()
    """The fields of forms that are numbers, also in lists, by their names there. By default,
    all are texts."""
    booleans: tuple[str, ...] = ()
    """The fields of forms that are booleans: true, 1 or on, and false or 0. By default, none is."""
    lists: tuple[str, ...] = ()
    """The fields of forms that are lists, also where they occur once. By default, those that
    are repeated are."""


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
    operations: Some[OperationEntry] | None = None
    """The operations that the conversion applies to, each as both versions have it, or as a text
    where the newer version's name is enough; without it, all operations."""
    status: OneOrSome[StatusConfig, StatusConfig] | None = None
    """The status of answers that differs, such as `{ newer: 422, older: 400 }`, or a list of them.
    By default, none does."""
    forms: FormsConfig | None = None
    """How forms become JSON, which the other version takes alone. Without it, they stay forms."""
    events: Mapping[_EventName, _EventName] = Field(default_factory=dict)
    """The names of server-sent events (text/event-stream) that differ: those of the older version,
    by those of the newer one. By default, none do."""
    statuses: tuple[Statuses, ...] = ()
    """The error statuses, such as 404 or 4xx, that the conversion applies to beside success."""
    on: Literal["requests", "responses", "errors", "both"] = "both"
    """The messages it applies to; `errors` are responses of `statuses`. The default is both."""
    methods: Some[Method] | None = None
    """The methods of the requests that the conversion applies to; without it, all methods."""
    paths: Some[str] | None = None
    """The endpoints that the conversion applies to, by their `path`; without it, all endpoints."""
    unfit: Literal["refuse", "keep"] = "refuse"
    """What happens to a value in the body or the query of a request that a change cannot convert:
    the request is refused (refuse), or the value stays as it is, for the service to judge (keep).
    The default is refuse."""
    examples: tuple[ExampleConfig, ...] = ()
    """Bodies as both versions have them. `check` converts them both ways, and compares."""
