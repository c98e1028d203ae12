"""The shape of gateway.yaml, as pydantic models.

What these models accept is what the JSON Schema for editors says. What only the whole can tell
(a service that is not there, a link that is missing) is `build`'s to check.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from gateway.config.changes.conversion_section import ConversionConfig
from gateway.config.sections.client_models import ClientName, ClientsConfig
from gateway.config.sections.cutover_models import CutoverConfig, ShadowConfig
from gateway.config.sections.lifecycle_models import BrownoutConfig, LifecycleConfig
from gateway.config.shape import (
    HEALTH_PATH,
    HOST,
    Bytes,
    FieldName,
    Method,
    Name,
    NumberText,
    PositiveInt,
    Seconds,
    SectionModel,
    Some,
)


class TimeoutsConfig(SectionModel):
    """How long the gateway waits for a service, in seconds."""

    connect: Seconds = 5.0
    """For a connection."""
    first_byte: Seconds = 30.0
    """For the head of the response, once the request is sent."""
    between_bytes: Seconds = 60.0
    """For the next bytes of a body, in either direction."""
    whole: Seconds | None = None
    """For all of it, from the request to the end of the response; without it, there is no bound."""


class EjectionConfig(SectionModel):
    """When a target that fails is left alone, while others do not."""

    failures: PositiveInt = 5
    """After so many failures in a row."""
    seconds: Seconds = 5.0
    """For so long at first; each failed trial doubles it."""
    longest: Seconds = 60.0
    """But no longer than this, in seconds."""


class CapacityConfig(SectionModel):
    """How many requests the service is given at a time; more are answered 503."""

    in_flight: PositiveInt = 1000
    """At most so many at once."""
    queue: Annotated[int, Field(ge=0), NumberText] = 1000
    """So many more may wait."""
    patience: Seconds = 5.0
    """For so long, in seconds."""


class HealthConfig(SectionModel):
    """How each target is asked whether it is well; a 2xx says yes, silence and all else no."""

    path: Annotated[str, Field(pattern=HEALTH_PATH)]
    """What is asked for, such as /readyz."""
    interval: Seconds = 5.0
    """Between two questions, in seconds."""
    timeout: Seconds = 2.0
    """Of one question, in seconds."""
    down_after: PositiveInt = 3
    """After so many bad answers in a row a target is down."""
    up_after: PositiveInt = 2
    """After so many good answers in a row it is up again."""


class ServiceConfig(SectionModel):
    """A backend."""

    targets: Some[str]
    """Its addresses, as `http://host:port`; the least busy one is asked."""
    host: Annotated[str, Field(pattern=HOST)] = "client"
    """What Host says: `client`, as the client said it; `target`, the address; or a host name."""
    timeouts: TimeoutsConfig = TimeoutsConfig()
    """How long to wait for it."""
    ejection: EjectionConfig = EjectionConfig()
    """When a target that fails is left alone."""
    capacity: CapacityConfig = CapacityConfig()
    """How many requests it is given at a time."""
    health: HealthConfig | None = None
    """How its targets are asked whether they are well; without it, they are not."""


class PathVersion(SectionModel):
    """The version is the `{version}` of the path."""

    in_: Annotated[Literal["path"], Field(alias="in")]


class QueryVersion(SectionModel):
    """The version is a query parameter."""

    in_: Annotated[Literal["query"], Field(alias="in")]
    name: Annotated[str, Field(min_length=1)]
    """The name of the parameter, case-sensitive."""
    default: str | None = None
    """The version to serve when the request names none; without it, such a request is refused."""


class HeaderVersion(SectionModel):
    """The version is a request header."""

    in_: Annotated[Literal["header"], Field(alias="in")]
    name: FieldName
    """The name of the header, case-insensitive."""
    default: str | None = None
    """The version to serve when the request names none; without it, such a request is refused."""


class AcceptVersion(SectionModel):
    """The version is part of a media type in Accept."""

    in_: Annotated[Literal["accept"], Field(alias="in")]
    media_type: str
    """The media type, with `{version}` where the version stands."""
    default: str | None = None
    """The version to serve when the request names none; without it, such a request is refused."""


ReaderConfig = Annotated[
    PathVersion | QueryVersion | HeaderVersion | AcceptVersion, Field(discriminator="in_")
]


def _one_or_several(value: object) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


class EndpointConfig(SectionModel):
    """A public path of an API."""

    path: str
    """The path; `{name}` captures a segment or a part of one, `{name*}` all that is left."""
    version: (
        Annotated[
            Annotated[ReaderConfig, Tag("one")] | Annotated[Some[ReaderConfig], Tag("several")],
            Discriminator(_one_or_several),
        ]
        | None
    ) = None
    """What selects the version here; where several do, all that speak must agree."""
    methods: Some[Method] | None = None
    """The methods to let through; HEAD comes with GET. Without it, the service decides."""
    upstream_path: str | None = None
    """The path to ask the service for, instead of the API's."""
    max_body: Bytes | None = None
    """What a request body may have here, in bytes; without it, `limits.body` holds."""

    @property
    def readers(self) -> tuple[ReaderConfig, ...]:
        """Return what selects the version, always as a tuple."""
        if self.version is None:
            return ()
        return self.version if isinstance(self.version, tuple) else (self.version,)


class CheckConfig(SectionModel):
    """How many of the converted answers are validated; what is wrong is counted and logged."""

    percent: Annotated[float, Field(gt=0, le=100), NumberText]
    """Of them."""


class VersionConfig(SectionModel):
    """Where a version is served."""

    service: str | None = None
    """The service that speaks this version."""
    via: str | None = None
    """The version whose service answers instead, through the conversions between the two."""
    lifecycle: LifecycleConfig | None = None
    """When it is deprecated and when it ends. Once it has, it needs neither service nor via."""
    brownout: BrownoutConfig | None = None
    """When it is refused for a while before it ends."""
    shadow: ShadowConfig | None = None
    """Who else is asked in the background, to compare."""
    cutover: CutoverConfig | None = None
    """Who is served via another version already."""
    schema_: Annotated[str | None, Field(alias="schema", min_length=1)] = None
    """The OpenAPI document: a URL, a file beside this one, or `live`, which is /openapi.json of the
    service, and what a version with a service has if nothing is said."""
    check: CheckConfig | None = None
    """Validate some of the converted answers by that document, in the background."""


class ApiConfig(SectionModel):
    """A resource family: where it is found, which versions it has, who serves them."""

    endpoints: Some[EndpointConfig]
    """Its public paths."""
    service: str | None = None
    """The service, for an API without versions."""
    versions: Annotated[dict[str, VersionConfig], Field(min_length=1)] | None = None
    """Its versions."""
    version_format: Literal["integer", "semantic", "date"] = "integer"
    """How its versions are written: 2, 1.4.0 (Semantic Versioning) or 2026-01-31."""
    match: Literal["exact", "nearest_lower"] = "exact"
    """What a version gets that is not on offer: a refusal, or the newest one before it."""
    ranges: bool = False
    """Whether `1.2+` names the newest version from there on, and `1.x` the newest of those."""
    default_version: str | None = None
    """The version to serve when a request names none; an endpoint may have its own."""
    pins: dict[ClientName, str] = Field(default_factory=dict)
    """The version that a client gets when its request names none, by the name of the client."""
    version_header: FieldName | None = None
    """The header of responses that says which version was served."""
    conversions: tuple[ConversionConfig, ...] = ()
    """The changes between its versions."""
    upstream_path: str | None = None
    """The path to ask the services for; `{version}` is the version that the service speaks."""


class LimitsConfig(SectionModel):
    """Bounds on what clients may cost."""

    convert: Bytes = 16 * 1024 * 1024
    """Bytes of a body that is converted, before and after its content coding is undone."""
    body: Bytes | None = None
    """Bytes of a request body; without it, there is no bound."""
    target: Annotated[int, Field(ge=256, le=64 * 1024), NumberText] = 8 * 1024
    """Bytes of a request target, which is path and query."""
    header_bytes: Annotated[int, Field(ge=1024, le=1024 * 1024), NumberText] = 64 * 1024
    """Bytes of all header fields of a request."""
    header_fields: Annotated[int, Field(ge=8, le=10_000), NumberText] = 128
    """How many header fields a request may have."""
    header_seconds: Seconds = 10.0
    """From the first byte of a request to the end of its header fields."""
    idle_seconds: Seconds = 75.0
    """How long a connection is kept without a request."""
    stall_seconds: Seconds = 60.0
    """How long a client may neither send nor take any of a body."""
    connections: PositiveInt = 10_000
    """How many clients may be connected to one worker at a time (10,000 by default); fewer where
    the process may open too few files for a connection to a service beside each."""
    tunnels: PositiveInt = 1000
    """How many connections to one worker may have switched to WebSocket at a time (1,000 by
    default); one more is refused with 503."""
    tunnel_seconds: Seconds = 3600.0
    """How many seconds may pass without a byte in either direction before a connection that has
    switched to WebSocket is cut (3,600 by default)."""


class Config(SectionModel):
    """gateway.yaml."""

    services: dict[Name, ServiceConfig]
    """The backends, by name."""
    apis: dict[Name, ApiConfig]
    """The APIs, by name."""
    workers: Annotated[int, Field(ge=1, le=256), NumberText] | None = None
    """How many processes serve; without it, one a core. Taken up at start."""
    limits: LimitsConfig = LimitsConfig()
    """Bounds on what clients may cost."""
    state: str | None = None
    """The file in which usage and overrides are kept across restarts; without it, or if it is
    empty, they are kept in memory alone. Taken up at start."""
    clients: ClientsConfig | None = None
    """Who asks; without it, nobody is told apart."""
    default_version: str | None = None
    """The version to serve when a request names none, in every API that says nothing else."""
    version_header: FieldName | None = None
    """The header of responses that says which version was served, in every API."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks (CIDR) whose X-Forwarded-* and Forwarded fields are believed and passed on."""


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of gateway.yaml, for editors.

    They see the file before its variables are filled in, so where the models want a number or a
    text of a certain form, it takes a variable as well.
    """
    schema = _or_variable(Config.model_json_schema())
    schema["$defs"]["Variable"] = {
        "description": "An environment variable: ${NAME} or ${NAME:-default}.",
        "pattern": r"\$\{",
        "type": "string",
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _or_variable(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_or_variable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: _or_variable(part) for key, part in schema.items()}
    if "patternProperties" in schema:
        schema["additionalProperties"] = False  # a name of another form is a mistake
    if "pattern" in schema or schema.get("type") in ("integer", "number"):
        about = {key: schema.pop(key) for key in _ABOUT if key in schema}
        return {**about, "anyOf": [schema, {"$ref": "#/$defs/Variable"}]}
    return schema


_ABOUT = ("title", "description", "default")
