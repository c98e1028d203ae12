"""Services: the backends, and how long the gateway waits for them."""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

CLIENT_HOST = "client"
TARGET_HOST = "target"


class Target(NamedTuple):
    """One address of a service."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Return host and port as a URI has them (RFC 3986, section 3.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for a service, in seconds.

    Attributes:
        connect: for a connection.
        first_byte: for the head of the response, once the request is sent.
        between_bytes: for the next bytes of a body, in either direction.
        whole: for all of it, from the request to the end of the response; infinite if not set.
    """

    connect: float = 5.0
    first_byte: float = 30.0
    between_bytes: float = 60.0
    whole: float = inf


@dataclass(frozen=True, slots=True)
class Ejection:
    """When a target that fails is left alone.

    Attributes:
        failures: in a row, after which it is.
        seconds: for how long at first; each failed trial doubles it.
        longest: but no longer than this, in seconds.
    """

    failures: int = 5
    seconds: float = 5.0
    longest: float = 60.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many requests a service is given at a time.

    Attributes:
        in_flight: at most so many at once.
        queue: so many more may wait.
        patience: for so long, in seconds.
    """

    in_flight: int = 1000
    queue: int = 1000
    patience: float = 5.0


@dataclass(frozen=True, slots=True)
class Health:
    """How a target is asked whether it is well; a 2xx says yes.

    Attributes:
        path: what is asked for.
        interval: between two questions, in seconds.
        timeout: of one, in seconds.
        down_after: as many bad answers in a row.
        up_after: as many good ones.
    """

    path: str
    interval: float = 5.0
    timeout: float = 2.0
    down_after: int = 3
    up_after: int = 2


@dataclass(frozen=True, slots=True)
class Service:
    """A backend: its name, its addresses and its bounds.

    Attributes:
        host: what Host says there: CLIENT_HOST for what the client said, TARGET_HOST for the
            authority of the target, or any other text as it is.
    """

    name: str
    targets: tuple[Target, ...]
    host: str = CLIENT_HOST
    timeouts: Timeouts = Timeouts()
    ejection: Ejection = Ejection()
    capacity: Capacity = Capacity()
    health: Health | None = None
