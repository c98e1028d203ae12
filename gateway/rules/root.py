"""Config: the pydantic model of a whole gateway.yaml.

The JSON Schema for editors is made from this model, and both accept the same files. Mistakes that
involve several sections, such as the name of a service that does not exist, are found by `build`.
"""

from typing import Annotated

from pydantic import Field

from gateway.access.admin import Admin
from gateway.access.clients import Clients
from gateway.base.model import FieldName, Name, NumberText, SectionModel
from gateway.base.notify import Notify
from gateway.http.limits_section import LimitsConfig
from gateway.http.upstream.service_section import ServiceConfig
from gateway.observe.tracing_section import TracingConfig
from gateway.routing.api_section import ApiConfig
from gateway.routing.cors_section import CorsConfig
from gateway.store.state_section import FleetConfig


class Config(SectionModel):
    """The configuration of a version gateway, gateway.yaml."""

    services: dict[Name, ServiceConfig]
    """The backends that requests go to, by name."""
    apis: dict[Name, ApiConfig]
    """The APIs that the gateway serves, by name."""
    workers: Annotated[int, Field(ge=1, le=256), NumberText] | None = None
    """The number of worker processes. Without it, there is one for each core. A change takes
    effect at a restart."""
    limits: LimitsConfig = LimitsConfig()
    """The limits on what clients send and on how long they take."""
    state: str | None = None
    """Where usage, overrides, cutovers and the audit log are kept across restarts: a file, by its
    path or as sqlite:///PATH, or a database that several gateways share,
    postgresql://USER:PASSWORD@HOST:PORT/DATABASE. Without it, or if it is empty, they are kept in
    memory alone. A change takes effect at a restart."""
    fleet: FleetConfig = FleetConfig()
    """How gateways that share their state in PostgreSQL treat each other."""
    admin: Admin | None = None
    """Who may ask the admin port. Without it, everybody who reaches the port may read, and commands
    on the same machine may operate."""
    notify: Notify | None = None
    """Who gets word of what happens, such as a cutover that is rolled back. Without it, nobody
    does."""
    clients: Clients | None = None
    """What gives clients their names. Without it, clients have no names."""
    default_version: str | None = None
    """The version to serve when a request names none, in each API that has no default_version.
    Without it, such a request is refused."""
    version_header: FieldName | None = None
    """The response header that names the served version, in each API that has no version_header.
    Without it, there is none."""
    cors: CorsConfig | None = None
    """The scripts in browsers that may read the gateway's own answers, such as refusals. Services
    answer CORS for themselves. Without it, browsers show such an answer as a network error."""
    compress: bool = True
    """Whether converted answers are compressed as the client accepts: zstd, gzip or br. The default
    is true."""
    tracing: TracingConfig | None = None
    """Which requests are traced, and where their spans go, by OpenTelemetry. Without it, none are,
    unless OTEL_EXPORTER_OTLP_ENDPOINT is set."""
    trusted_proxies: tuple[str, ...] = ()
    """The networks (CIDR) of trusted proxies. Their Forwarded and X-Forwarded-* fields are used
    and passed on. By default, no proxy is trusted."""
