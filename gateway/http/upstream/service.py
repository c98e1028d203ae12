"""`services` in gateway.yaml: the backends, and how the gateway uses each of them."""

import re
import ssl
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, WithJsonSchema, WrapValidator

from gateway.base.files import ConfigFiles
from gateway.base.mistakes import Mistakes
from gateway.base.model import (
    STRICT,
    NonEmptyText,
    NumberText,
    Percent,
    PositiveInt,
    Seconds,
    SectionModel,
    Some,
    TextOr,
    matching,
)
from gateway.http.certificates import client_context, read_pair

CLIENT_HOST: Final = "client"
TARGET_HOST: Final = "target"

# The labels of a host name (RFC 1035, section 2.3.4). A last dot makes the name absolute.
_HOST_NAME: Final = r"[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?"
_LONGEST_HOST: Final = 254  # with the last dot
# A URL (RFC 9110, section 4.2) with a host to connect to, without a path or query.
_TARGET = re.compile(
    rf"https?://(?:(?P<name>{_HOST_NAME})|\[(?P<address>[0-9A-Fa-f:.]+)\])(?::[0-9]+)?/?\Z"
)
HealthPath = Annotated[
    str, matching(r"^/[!-~]*$", "a path must begin with a slash; write one like /readyz")
]
# Code represents a missing limit as infinity, and YAML as null.
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


ServerName = Annotated[
    str,
    Field(max_length=_LONGEST_HOST),
    matching(
        rf"^(?:{_HOST_NAME}|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)$",
        "not a name that a certificate can have; write a host name without a port, such as"
        " orders.internal",
    ),
]


class Target(NamedTuple):
    """A host and port; `weight` is the relative share of requests for each of its addresses."""

    host: str
    port: int
    secure: bool = False
    weight: int = 1

    @property
    def authority(self) -> str:
        """Host and port as the authority of a URI (RFC 3986, section 3.2)."""
        return f"{self._host}:{self.port}"

    @property
    def host_field(self) -> str:
        """The Host field of requests to the target, without the default port of the scheme."""
        usual = 443 if self.secure else 80
        return self._host if self.port == usual else self.authority

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The longest times to wait for a service, in seconds, before a response of 504."""

    __pydantic_config__ = STRICT

    connect: Seconds = 5.0
    """The longest time to connect to a target, in seconds. The default is 5."""
    first_byte: Seconds = 30.0
    """The longest time from the end of the request to the head of the response, in seconds. The
    default is 30."""
    between_bytes: Seconds = 60.0
    """The longest pause within a body, in either direction, in seconds. The default is 60."""
    whole: SecondsOrUnbounded = inf
    """The longest time from the request to the end of the response, with all retries, in seconds.
    Without it, there is no bound."""

    def after(self, seconds: float) -> "Timeouts":
        """Return the timeouts of another attempt, this long after the request.

        If no time is left, `whole` and `connect` are not positive.
        """
        left = self.whole - seconds
        return self if left == inf else replace(self, connect=min(self.connect, left), whole=left)


@dataclass(frozen=True, slots=True)
class Ejection:
    """When a failing target temporarily gets no requests, as long as other targets are healthy."""

    __pydantic_config__ = STRICT

    failures: PositiveInt = 5
    """The number of consecutive failures after which a target is ejected. The default is 5."""
    seconds: Seconds = 5.0
    """The duration of the first ejection, in seconds; each failed trial doubles it.

    The default is 5.
    """
    longest: Seconds = 60.0
    """The longest duration of an ejection, in seconds. The default is 60."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limits on requests to a service. Further requests are refused with 503."""

    __pydantic_config__ = STRICT

    in_flight: PositiveInt = 1000
    """The largest number of requests in flight to the service. The default is 1000."""
    queue: Annotated[int, Field(ge=0), NumberText] = 1000
    """The largest number of waiting requests. The default is 1000."""
    patience: Seconds = 5.0
    """The longest time that a request waits for capacity, in seconds. The default is 5."""


RetryCause = Literal["connect", "reset", "timeout", 502, 503, 504]


@dataclass(frozen=True, slots=True)
class Retries:
    """When a request is sent again, to another target if there is one.

    A request that the service may have received is sent again only if it is idempotent (RFC 9110,
    section 9.2.2) and its body is not streamed.
    """

    __pydantic_config__ = STRICT

    attempts: Annotated[int, Field(ge=0, le=10), NumberText] | None = None
    """The largest number of further attempts. With 0, there are none. By default, each other
    target is tried once."""
    on: tuple[RetryCause, ...] = ("connect",)
    """The failures after which a request is sent again: no connection (connect), a connection that
    ends before the response (reset), no response in time (timeout), and the status codes 502, 503
    and 504. The default is connect."""
    budget: Percent = 20.0
    """The largest share of a service's requests that may be retries, in percent. Ten retries are
    always possible, and retries after connect do not count. The default is 20."""


@dataclass(frozen=True, slots=True)
class Health:
    """The checks of each target's health. Only a status of 2xx is healthy."""

    __pydantic_config__ = STRICT

    path: HealthPath
    """The path that a health check requests, such as /readyz. Its Host field is that of `host`, or
    the address of the target if `host` is `client`."""
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
        host: The Host header field of requests to the service: CLIENT_HOST for the value that the
            client sent, TARGET_HOST for the authority of the target, or a literal value.
        reads_version: Whether requests must name the selected version. None if the service has only
            one version and therefore need not read it; then only the path names the version.
    """

    name: str
    targets: tuple[Target, ...]
    host: str = CLIENT_HOST
    timeouts: Timeouts = Timeouts()
    ejection: Ejection = Ejection()
    capacity: Capacity = Capacity()
    health: Health | None = None
    reads_version: bool | None = True
    retries: Retries = Retries()
    tls: ssl.SSLContext | None = field(default=None, compare=False)
    server_name: str | None = None
    resolve_seconds: float = 10.0
    connection_seconds: float = 600.0


class ServiceTls(SectionModel):
    """TLS 1.2 and 1.3 for the connections to the targets that begin with https."""

    ca: NonEmptyText | None = None
    """The file of the authorities that sign the service's certificates, as PEM. Its path starts
    from the folder of gateway.yaml. Without it, the authorities of the system are trusted."""
    server_name: ServerName | None = None
    """The host name that the certificate must have, which is also sent as SNI. The default is the
    host of the target."""
    certificate: NonEmptyText | None = None
    """The file of the gateway's client certificate and its chain, as PEM. It needs a key. Without
    it, the gateway presents no certificate."""
    key: NonEmptyText | None = None
    """The file of the certificate's key, as unencrypted PEM. Its path starts from the folder of
    gateway.yaml."""
    verify: bool = True
    """Whether the service's certificate is checked. Without the check, anybody on the network path
    can read and change messages. The default is true."""

    def compile(self, files: ConfigFiles, mistakes: Mistakes) -> ssl.SSLContext | None:
        own, ca = None, None
        if (self.certificate is None) != (self.key is None):
            mistakes.add("needs both certificate and key, or neither")
        elif self.certificate is not None and self.key is not None:
            own = mistakes.attempt(partial(read_pair, files, self.certificate, self.key))
        if self.ca is not None:
            ca = mistakes.attempt(partial(files.read, self.ca, "ca"), "ca")
        if not self.verify:
            mistakes.warn(
                "accepts any certificate, so anybody on the network path can read and change"
                " messages; remove verify: false, and name the authority in ca",
                "verify",
            )
            if ca is not None:
                mistakes.add("is not used with verify: false; remove one of them", "ca")
        return mistakes.attempt(partial(client_context, ca=ca, pair=own, verify=self.verify))


class WeightedTarget(SectionModel):
    """A target with its share of the requests."""

    url: str
    """The address, as `http://host:port` or `https://host:port`."""
    weight: Annotated[int, Field(ge=1, le=1000), NumberText] = 1
    """The share of the requests, relative to the weights of the other targets. The default is
    1."""


class ServiceModel(SectionModel):
    """A backend: its addresses, and how the gateway uses them."""

    targets: Some[TextOr[str, WeightedTarget]]
    """The addresses of the service, as `http://host:port` or `https://host:port`. A request goes to
    the least busy one. If a host name has several addresses, all of them are used."""
    tls: ServiceTls = ServiceTls()
    """The TLS settings for targets that begin with https. By default, certificates are checked
    against the authorities of the system."""
    host: HostPolicy = "client"
    """The Host field of requests to the service: that of the client (`client`), the address of the
    target (`target`), or any other text. The default is client."""
    timeouts: Timeouts = Timeouts()
    """The timeouts of requests to the service, in seconds."""
    ejection: Ejection = Ejection()
    """When a failing target of the service temporarily gets no requests."""
    capacity: Capacity = Capacity()
    """The largest numbers of requests in flight to the service and of waiting requests."""
    health: Health | None = None
    """The health checks of the service's targets. Without it, there are none."""
    retries: Retries = Retries()
    """After which failures, and how often, a request is sent again."""
    resolve_seconds: Annotated[Seconds, Field(ge=1)] = 10.0
    """The longest time between two DNS lookups of a host name in targets, in seconds. A name with a
    shorter time to live is looked up more often. The default is 10."""
    connection_seconds: Seconds = 600.0
    """The longest time that a connection to the service is used, in seconds, randomly shortened by
    up to a quarter. The default is 600."""
    reads_version: bool | None = None
    """Whether the service reads the version of requests. If so, requests that name another version
    or no version are changed to name the selected one. The default is true, or false for a service
    of one version without a conversion or pin to it."""

    def compile(
        self, name: str, files: ConfigFiles, mistakes: Mistakes, *, is_told: bool = True
    ) -> Service:
        """`is_told` is the value of `reads_version` if it is not configured."""
        here = mistakes.below("services", name)
        targets = here.attempt_each(_target, self.targets, "targets")
        tls = None
        if any(target.secure for target in targets):
            tls = self.tls.compile(files, here.below("tls"))
        elif self.tls != ServiceTls():
            here.add("no target uses TLS; write https:// in targets, or remove tls", "tls")
        return Service(
            name,
            targets,
            self.host,
            self.timeouts,
            self.ejection,
            self.capacity,
            self.health,
            True if self.reads_version is None and is_told else self.reads_version,
            self.retries,
            tls,
            self.tls.server_name,
            self.resolve_seconds,
            self.connection_seconds,
        )


def _target(given: str | WeightedTarget) -> Target:
    url, weight = (given, 1) if isinstance(given, str) else (given.url, given.weight)
    right = "write http://host:port or https://host:port"
    if "$" in url and "@" not in url:
        raise ValueError("a target cannot contain a dollar sign; write a variable as ${NAME}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"not a URL with a port from 1 to 65535; {right}") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError(f"a target must use HTTP or HTTPS; {right}")
    if "@" in parts.netloc:
        raise ValueError(f"a target cannot contain a user name or password; {right}")
    if parts.query or parts.fragment:
        raise ValueError(f"a target cannot have a query or fragment; {right}")
    if parts.path.rstrip("/"):  # no message shows the path, as it may come from a variable
        raise ValueError(
            f"a target cannot have a path; {right} here, and put the path in"
            " upstream_path of the API"
            " or endpoint, as in /base/{rest*}"
        )
    if port == 0:
        raise ValueError(f"no service listens on port 0; {right}")
    match = _TARGET.match(url)
    host = "" if match is None else match["name"] or match["address"]
    if not 0 < len(host) <= _LONGEST_HOST:
        raise ValueError(f"not a valid host for connections; {right}")
    return Target(host, port or _DEFAULT_PORTS[parts.scheme], parts.scheme == "https", weight)


_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
