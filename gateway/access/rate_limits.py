"""The key `rate_limits` of gateway.yaml: limits on the number of requests in a time.

The header fields and the problem type are those of draft-ietf-httpapi-ratelimit-headers-10.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from gateway.access.clients import ClientNaming
from gateway.access.token_buckets import Bucket, TokenBuckets, bucket_number
from gateway.base.client_names import Identity
from gateway.base.errors import Fault, FaultCode
from gateway.base.headers import FieldLines
from gateway.base.mistakes import Mistakes
from gateway.base.model import ClientName, Name, NumberText, SectionModel, Some, matching

_UNITS = {
    "s": (1, "a second"),
    "min": (60, "a minute"),
    "h": (3600, "an hour"),
    "d": (86_400, "a day"),
}


class RateLimit(SectionModel):
    """A limit on the number of requests in a time."""

    name: Annotated[Name, Field(max_length=64)]
    """The name of the limit in responses and metrics."""
    by: Literal["client", "address", "api"]
    """The requests that are counted together: those of a client, of an address, or all requests of
    an API. A client without a proven name is limited by its address. Addresses of the same IPv6
    /64 are one address."""
    rate: Annotated[
        str,
        matching(
            r"^[1-9][0-9]{0,5}/(s|min|h|d)$",
            "not a rate; write a number and s, min, h or d, as in 100/min",
        ),
    ]
    """The number of requests in a second (s), minute (min), hour (h) or day (d), as in 100/min."""
    burst: Annotated[int, Field(ge=1, le=1_000_000), NumberText] | None = None
    """The number of requests that may arrive at once. Without it, this is the number of `rate`."""
    apis: Some[Name] | None = None
    """The APIs that the limit applies to. Without it, the limit applies to all APIs."""
    versions: Some[str] | None = None
    """The versions that the limit applies to. Without it, the limit applies to all versions."""
    clients: Some[ClientName] | None = None
    """The names of the clients that the limit applies to. Without it, the limit applies to all
    clients."""
    shared: bool = False
    """Whether the replicas of a fleet share the limit. Otherwise, each replica has its own. The
    default is false."""

    def compile(self, naming: ClientNaming | None, mistakes: Mistakes) -> "AppliedLimit":
        if naming is None and self.clients is not None:
            mistakes.add("no client has a name; add clients: { by: [ ... ] } at the top", "clients")
        elif naming is not None and self.by == "client" and not naming.verifies:
            mistakes.warn(
                "warning: clients can escape the limit by another name, since no source in"
                " 'clients' proves names; add a limit by: address, or a source that proves names"
            )
        named = self.clients and [naming.known_as(each) if naming else "" for each in self.clients]
        count, _, unit = self.rate.partition("/")
        seconds, word = _UNITS[unit]
        return AppliedLimit(
            Bucket(self.name, seconds / int(count), self.burst or int(count), self.shared),
            self.by,
            None if named is None else frozenset(named),
            f'"{self.name}";q={count};w={seconds}'.encode(),
            f'"{self.name}";r=%d;t=%d'.encode(),
            f"{count} requests in {word}",
            naming is not None and naming.verifies,
        )


class AppliedLimit(NamedTuple):
    """A limit as requests use it.

    Attributes:
        left: the template of the value of RateLimit.
        text: the rate in words.
        verifies: whether any source of client names verifies credentials.
    """

    bucket: Bucket
    by: str
    clients: frozenset[str] | None
    policy: bytes
    left: bytes
    text: str
    verifies: bool

    def applies(self, client: str) -> bool:
        return self.clients is None or client in self.clients

    def key(self, api: str, identity: Identity, address: Callable[[], str | None]) -> str:
        if self.by == "api":
            return api
        # An unproven name would give a client a new bucket for each name that it invents.
        if self.by == "client" and identity.name and (identity.proof or not self.verifies):
            return identity.name
        return f" {address() or ''}"  # no client name begins with a blank


VersionLimits = Mapping[tuple[str, object], Sequence[AppliedLimit]]
"""The limits of each version that has limits, by the name of the API and the version."""


def compile_limits(
    limits: Sequence[RateLimit],
    apis: Mapping[str, Mapping[str, object]],
    naming: ClientNaming | None,
    mistakes: Mistakes,
) -> VersionLimits | None:
    """`apis` has the versions of each API by label; empty for an API without versions."""
    found: dict[tuple[str, object], list[AppliedLimit]] = {}
    names: set[str] = set()
    for index, model in enumerate(limits):
        here = mistakes.below("rate_limits", index)
        if model.name in names:
            here.add("has the name of another limit; choose another one", "name")
        names.add(model.name)
        limit, labels = model.compile(naming, here), dict[str, object]()
        for at, api in enumerate(model.apis or apis):
            own = here.look_up(api, apis, "API", "apis", at) or {}
            labels |= own
            for label, version in own.items() or [("", None)]:
                if model.versions is None or label in model.versions:
                    found.setdefault((api, version), []).append(limit)
        for at, label in enumerate(model.versions or ()):
            here.look_up(label, labels, "version", "versions", at)
    return found or None


class RateLimiter:
    """`report` receives a limit and a bucket number for each admitted request of a shared limit."""

    def __init__(
        self,
        buckets: TokenBuckets,
        clock: Callable[[], float],
        count: Callable[[str, str, str], None],
        report: Callable[[str, int], None],
    ) -> None:
        self._buckets, self._clock, self._count, self._report = buckets, clock, count, report

    def admit(
        self,
        limits: VersionLimits,
        identity: Identity,
        address: Callable[[], str | None],
        api: str,
        version: object,
    ) -> tuple[Fault | None, FieldLines]:
        """Take a token of each limit, or return the fault of a request that exceeds a limit.

        The second result is the header fields of every response. `address` returns the network of
        the client.
        """
        applied: list[AppliedLimit] = []
        wanted: list[tuple[Bucket, str]] = []
        for limit in limits.get((api, version), ()):
            if limit.clients is None or identity.name in limit.clients:
                applied.append(limit)
                wanted.append((limit.bucket, limit.key(api, identity, address)))
        if not applied:
            return None, ()
        found = self._buckets.take(wanted, self._clock())
        policies: list[bytes] = []
        left: list[bytes] = []
        exceeded: list[AppliedLimit] = []
        for limit, (remaining, reset, wait) in zip(applied, found, strict=True):
            policies.append(limit.policy)
            left.append(limit.left % (remaining, ceil(reset)))
            if wait:
                exceeded.append(limit)
        fields = (b"RateLimit-Policy", b", ".join(policies)), (b"RateLimit", b", ".join(left))
        if exceeded:
            for each in exceeded:
                self._count("rate_limited_requests", each.bucket.name, api)
            seconds = ceil(max(one.wait for one in found))
            names = tuple(each.bucket.name for each in exceeded)
            detail = f"The limit '{names[0]}' of {exceeded[0].text} is exceeded; try again in"
            retry = (b"Retry-After", b"%d" % seconds)
            code = FaultCode.RATE_LIMITED
            return Fault(code, f"{detail} {seconds} s.", fields=(retry,), violated=names), fields
        for bucket, key in wanted:
            if bucket.shared:
                self._report(bucket.name, bucket_number(bucket.name, key))
        return None, fields
