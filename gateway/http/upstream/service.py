"""`services` in gateway.yaml: the backends that requests go to, and how the gateway uses each."""

import re
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, WithJsonSchema, WrapValidator

from gateway.base.mistakes import Mistakes
from gateway.base.model import (
    STRICT,
    NumberText,
    PositiveInt,
    Seconds,
    SectionModel,
    Some,
    matching,
)

CLIENT_HOST: Final = "client"
TARGET_HOST: Final = "target"

# An http URL (RFC 9110, section 4.2.1) of a host that can be connected to, and of nothing more.
_TARGET = re.compile(
    r"http://(?:(?P<name>[A-Za-z0-9._-]+)|\[(?P<address>[0-9A-Fa-f:.]+)\])(?::[0-9]+)?/?\Z"
)
HealthPath = Annotated[
    str, matching(r"^/[!-~]*$", "a path begins with a slash; write one like /readyz")
]
# A missing bound is infinite for code, and null in YAML.
SecondsOrUnbounded = Annotated[
    Seconds,
    WrapValidator(lambda value, handler: inf if value is None else handler(value)),
    WithJsonSchema(
        {"anyOf": [{"exclusiveMinimum": 0, "maximum": 86400, "type": "number"}, {"type": "null"}]}
    ),
]
HostPolicy = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}(:[0-9]{1,5})?$",
        "not a host; write client, target, or a name like api.example.com",
    ),
]


class Target(NamedTuple):
    """One network address of a service."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Return host and port as the authority of a URI (RFC 3986, section 3.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long the gateway waits for a service, in seconds, before it answers 504 or gives up."""

    __pydantic_config__ = STRICT

    connect: Seconds = 5.0
    """The longest time to connect to a target, in seconds. The default is 5."""
    first_byte: Seconds = 30.0
    """The longest time from the end of the request to the head of the response, in seconds. The
    default is 30."""
    between_bytes: Seconds = 60.0
    """The longest pause within a body, in either direction, in seconds. The default is 60."""
    whole: SecondsOrUnbounded = inf
    """The longest time from the request to the end of the response, in seconds. Without it, there
    is no bound."""


@dataclass(frozen=True, slots=True)
class Ejection:
    """When a target that fails gets no requests for a while, as long as other targets do not."""

    __pydantic_config__ = STRICT

    failures: PositiveInt = 5
    """The number of consecutive failures after which a target is ejected. The default is 5."""
    seconds: Seconds = 5.0
    """The time of a first ejection, in seconds; each failed trial doubles it. The default is 5."""
    longest: Seconds = 60.0
    """The longest time of an ejection, in seconds. The default is 60."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many requests a service is given at a time; requests beyond that are answered 503."""

    __pydantic_config__ = STRICT

    in_flight: PositiveInt = 1000
    """The largest number of requests in flight to the service. The default is 1000."""
    queue: Annotated[int, Field(ge=0), NumberText] = 1000
    """The largest number of requests that wait for their turn. The default is 1000."""
    patience: Seconds = 5.0
    """The longest time that a request waits for its turn, in seconds. The default is 5."""


@dataclass(frozen=True, slots=True)
class Health:
    """How the gateway checks the health of each target: a 2xx is good, all else is bad."""

    __pydantic_config__ = STRICT

    path: HealthPath
    """The path that a health check requests, such as /readyz. Its Host field is that of `host`, or
    the address of the target with `client`."""
    interval: Seconds = 5.0
    """The time between two health checks of a target, in seconds. The default is 5."""
    timeout: Seconds = 2.0
    """The longest time that a health check may take, in seconds. The default is 2."""
    down_after: PositiveInt = 3
    """The number of consecutive failed checks after which a target is down. The default is 3."""
    up_after: PositiveInt = 2
    """The number of consecutive successful checks after which a target is up again. The default is
    2."""


@dataclass(frozen=True, slots=True)
class Service:
    """A backend: its name, its addresses and its limits.

    Attributes:
        name: The name of the service in the configuration.
        targets: The addresses of the service.
        host: The Host header field of requests to the service: CLIENT_HOST for the value that the
            client sent, TARGET_HOST for the authority of the target, or any other text literally.
        timeouts: The timeouts of requests to the service.
        ejection: The rule by which failing targets are ejected.
        capacity: The number of concurrent and of waiting requests.
        health: The active health check; None where there is none.
        reads_version: Whether requests must name the version that was decided on. None where the
            service serves one version alone, so that it need not read it: then only the path does.
    """

    name: str
    targets: tuple[Target, ...]
    host: str = CLIENT_HOST
    timeouts: Timeouts = Timeouts()
    ejection: Ejection = Ejection()
    capacity: Capacity = Capacity()
    health: Health | None = None
    reads_version: bool | None = True


class ServiceModel(SectionModel):
    """A backend: its addresses, and how the gateway uses them."""

    targets: Some[str]
    """The addresses of the service, as `http://host:port`. A request goes to the least busy."""
    host: HostPolicy = "client"
    """The Host field of requests to the service: the client's (`client`), the address of the target
    (`target`), or any other text. The default is client."""
    timeouts: Timeouts = Timeouts()
    """The timeouts of requests to the service, in seconds."""
    ejection: Ejection = Ejection()
    """The time in which a failing target of the service gets no requests."""
    capacity: Capacity = Capacity()
    """The largest numbers of requests in flight to the service and of waiting requests."""
    health: Health | None = None
    """The health checks of the service's targets. Without it, there are none."""
    reads_version: bool | None = None
    """Whether the service reads the version of requests. If so, it gets the selected version if the
    client named another one or none. The default is true, or false for a service of one version
    without a conversion or pin to it."""

    def compile(self, name: str, mistakes: Mistakes, *, is_told: bool = True) -> Service:
        """Return the service.

        Args:
            name: the name of the service.
            mistakes: collects the mistakes.
            is_told: whether the service reads the version of requests, if that is not configured.
        """
        targets = (
            mistakes.attempt(partial(_target, url), "services", name, "targets", index)
            for index, url in enumerate(self.targets)
        )
        return Service(
            name,
            tuple(target for target in targets if target is not None),
            self.host,
            self.timeouts,
            self.ejection,
            self.capacity,
            self.health,
            True if self.reads_version is None and is_told else self.reads_version,
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
