"""Services: the backends that the gateway forwards requests to, with timeouts and limits."""

from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

CLIENT_HOST: Final = "client"
TARGET_HOST: Final = "target"


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
    """The timeouts of requests to a service.

    Attributes:
        connect: The seconds to wait for a connection.
        first_byte: The seconds to wait for the head of the response after the request was sent.
        between_bytes: The seconds to wait for the next bytes of a body, in either direction.
        whole: The seconds from the start of the request to the end of the response; infinite
            where the configuration sets no limit.
    """

    connect: float = 5.0
    first_byte: float = 30.0
    between_bytes: float = 60.0
    whole: float = inf


@dataclass(frozen=True, slots=True)
class Ejection:
    """When a failing target is ejected: for a while it receives no requests.

    Attributes:
        failures: The number of consecutive failures after which a target is ejected.
        seconds: The seconds of the first ejection; each failed trial request doubles them.
        longest: The maximum of seconds of one ejection.
    """

    failures: int = 5
    seconds: float = 5.0
    longest: float = 60.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many requests the gateway sends to a service at a time.

    Attributes:
        in_flight: The maximum number of concurrent requests.
        queue: The maximum number of requests that wait for one of those to end.
        patience: The maximum of seconds that a request waits in the queue.
    """

    in_flight: int = 1000
    queue: int = 1000
    patience: float = 5.0


class Health(NamedTuple):
    """The active health check of a target; a response with a status of 2xx passes it.

    Attributes:
        path: The path that the check requests.
        interval: The seconds between two checks.
        timeout: The seconds after which a check without a response fails.
        down_after: The number of consecutive failed checks that mark a target as unhealthy.
        up_after: The number of consecutive passed checks that mark a target as healthy again.
    """

    path: str
    interval: float = 5.0
    timeout: float = 2.0
    down_after: int = 3
    up_after: int = 2


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
