"""Services: the backends, and how long the gateway waits for them."""

from dataclasses import dataclass
from typing import NamedTuple


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
    """

    connect: float = 5.0
    first_byte: float = 30.0
    between_bytes: float = 60.0


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
class Service:
    """A backend: its name, its addresses and its bounds."""

    name: str
    targets: tuple[Target, ...]
    timeouts: Timeouts = Timeouts()
    ejection: Ejection = Ejection()
