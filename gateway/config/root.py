"""Config: the pydantic model of a whole gateway.yaml.

The JSON Schema for editors is made from this model, and both accept the same files. Mistakes that
involve several sections, such as the name of a service that does not exist, are found by `build`.
"""

from typing import Annotated

from pydantic import Field

from gateway.config.sections.api_section import ApiConfig
from gateway.config.sections.clients.client_section import ClientsConfig
from gateway.config.sections.limits_section import LimitsConfig
from gateway.config.sections.service_section import ServiceConfig
from gateway.config.shape import FieldName, Name, NumberText, SectionModel


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
    """The file that keeps usage, overrides and cutovers across restarts. Without it, or if it is
    empty, they are kept in memory alone. A change takes effect at a restart."""
    clients: ClientsConfig | None = None
    """What gives clients their names. Without it, clients have no names."""
    default_version: str | None = None
    """The version to serve when a request names none, in each API that has no default_version.
    Without it, such a request is refused."""
    version_header: FieldName | None = None
    """The response header that names the served version, in each API that has no version_header.
    Without it, there is none."""
    trusted_proxies: tuple[str, ...] = ()
    """The networks (CIDR) of trusted proxies. Their Forwarded and X-Forwarded-* fields are used
    and passed on. By default, no proxy is trusted."""
