"""`services` in gateway.yaml: the backends, and how the gateway uses each of them."""

import re
from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.model import NumberText, PositiveInt, Seconds, SectionModel, Some, matching
from gateway.http.upstream.service import Capacity, Ejection, Health, Service, Target, Timeouts

# An http URL (RFC 9110, section 4.2.1) of a host that can be connected to, and of nothing more.
_TARGET = re.compile(
    r"http://(?:(?P<name>[A-Za-z0-9._-]+)|\[(?P<address>[0-9A-Fa-f:.]+)\])(?::[0-9]+)?/?\Z"
)
HealthPath = Annotated[
    str, matching(r"^/[!-~]*$", "a path begins with a slash; write one like /readyz")
]
HostPolicy = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}(:[0-9]{1,5})?$",
        "not a host; write client, target, or a name like api.example.com",
    ),
]


class TimeoutsConfig(SectionModel):
    """How long the gateway waits for a service, in seconds, before it answers 504 or gives up."""

    connect: Seconds = 5.0
    """The longest time to connect to a target, in seconds. The default is 5."""
    first_byte: Seconds = 30.0
    """The longest time from the end of the request to the head of the response, in seconds. The
    default is 30."""
    between_bytes: Seconds = 60.0
    """The longest pause within a body, in either direction, in seconds. The default is 60."""
    whole: Seconds | None = None
    """The longest time from the request to the end of the response, in seconds. Without it, there
    is no bound."""


class EjectionConfig(SectionModel):
    """When a target that fails gets no requests for a while, as long as other targets do not."""

    failures: PositiveInt = 5
    """The number of failures in a row after which a target is ejected. The default is 5."""
    seconds: Seconds = 5.0
    """The time of a first ejection, in seconds; each failed trial doubles it. The default is 5."""
    longest: Seconds = 60.0
    """The longest time of an ejection, in seconds. The default is 60."""


class CapacityConfig(SectionModel):
    """How many requests a service is given at a time; requests beyond that are answered 503."""

    in_flight: PositiveInt = 1000
    """The largest number of requests that a service is given at a time. The default is 1000."""
    queue: Annotated[int, Field(ge=0), NumberText] = 1000
    """The largest number of requests that wait for their turn. The default is 1000."""
    patience: Seconds = 5.0
    """The longest time that a request waits for its turn, in seconds. The default is 5."""


class HealthConfig(SectionModel):
    """How the gateway checks the health of each target: a 2xx is good, all else is bad."""

    path: HealthPath
    """The path that a health check requests, such as /readyz. Its Host is that of host; with
    client, it is the address of the target."""
    interval: Seconds = 5.0
    """The time between two health checks of a target, in seconds. The default is 5."""
    timeout: Seconds = 2.0
    """The longest time that a health check may take, in seconds. The default is 2."""
    down_after: PositiveInt = 3
    """The number of bad checks in a row after which a target is down. The default is 3."""
    up_after: PositiveInt = 2
    """The number of good checks in a row after which a target is up again. The default is 2."""


class ServiceConfig(SectionModel):
    """A backend: its addresses, and how the gateway uses them."""

    targets: Some[str]
    """The addresses of the service, as `http://host:port`. A request goes to the least busy."""
    host: HostPolicy = "client"
    """The Host field of requests to the service: `client` keeps the client's, `target` is the
    address of the target, any other text is sent as it is. The default is client."""
    timeouts: TimeoutsConfig = TimeoutsConfig()
    """The timeouts of requests to the service, in seconds."""
    ejection: EjectionConfig = EjectionConfig()
    """When a failing target of the service gets no requests for a while."""
    capacity: CapacityConfig = CapacityConfig()
    """How many requests the service is given at a time, and how many wait."""
    health: HealthConfig | None = None
    """The health checks of the service's targets. Without it, there are none."""
    reads_version: bool | None = None
    """Whether the service reads the version of requests. If so, it is told the version that was
    decided on: where the client named another one, or none. Without it, true, unless the service
    serves one version, and no conversion or pin leads to it."""


def build_service(
    name: str, config: ServiceConfig, mistakes: Mistakes, *, is_told: bool = True
) -> Service:
    """Return the service of that name; mistakes go to `mistakes`.

    Args:
        name: the name.
        config: the service as configured.
        mistakes: collects the mistakes.
        is_told: whether the service reads the version of requests, if it is not configured.
    """
    reads = config.reads_version
    targets = (
        mistakes.attempt(partial(_target, url), "services", name, "targets", index)
        for index, url in enumerate(config.targets)
    )
    return Service(
        name,
        tuple(target for target in targets if target is not None),
        config.host,
        Timeouts(**config.timeouts.model_dump(exclude_none=True)),
        Ejection(**config.ejection.model_dump()),
        Capacity(**config.capacity.model_dump()),
        None if config.health is None else Health(**config.health.model_dump()),
        reads if reads is not None or not is_told else True,
    )


def _target(url: str) -> Target:
    right = "write http://host:port"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"not a URL with a port from 1 to 65535; {right}") from None
    if parts.scheme != "http":
        raise ValueError(f"a target is reached over plain HTTP; {right}")
    if "@" in parts.netloc:
        raise ValueError(f"a target carries no user name or password; {right}")
    if parts.query or parts.fragment:
        raise ValueError(f"a target has no query and no fragment; {right}")
    if parts.path.rstrip("/"):  # shown in no message, as it may come from a variable
        raise ValueError(
            f"a target has no path; {right} here, and the path before that of requests in"
            " upstream_path of the API or the endpoint, as in /base/{rest*}"
        )
    if port == 0:
        raise ValueError(f"no service listens on port 0; {right}")
    match = _TARGET.match(url)
    if match is None:
        raise ValueError(f"not a host that can be connected to; {right}")
    return Target(match["name"] or match["address"], port or 80)
