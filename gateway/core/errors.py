"""Faults: everything that can go wrong with one request, by name.

A Fault says whose it was; its status follows from the one table below, and its body is a problem
detail (RFC 9457). Nothing else in the gateway chooses an error status.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType


class Blame(Enum):
    """Whose fault it was."""

    CLIENT = "client"
    GATEWAY = "gateway"
    UPSTREAM = "upstream"


class FaultCode(StrEnum):
    """Stable, machine-readable names of the faults; they are part of the contract."""

    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_TIMEOUT = "request_timeout"
    BODY_TOO_LARGE = "body_too_large"
    URI_TOO_LONG = "uri_too_long"
    HEADERS_TOO_LARGE = "headers_too_large"
    EXPECTATION_FAILED = "expectation_failed"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    UNCONVERTIBLE_REQUEST = "unconvertible_request"
    VERSION_MISSING = "version_missing"
    VERSION_MALFORMED = "version_malformed"
    VERSION_UNKNOWN = "version_unknown"
    VERSION_CONFLICT = "version_conflict"
    VERSION_RETIRED = "version_retired"
    VERSION_BROWNOUT = "version_brownout"
    INTERNAL = "internal"
    OVERLOADED = "overloaded"
    UPSTREAM_UNAVAILABLE = "upstream_unavailable"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    UPSTREAM_PROTOCOL = "upstream_protocol"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    CONVERSION_FAILED = "conversion_failed"


@dataclass(frozen=True, slots=True)
class FaultKind:
    """What is the same for every fault of one code."""

    blame: Blame
    status: int
    title: str


# The status of a fault about a version depends on the mechanism, so it is the one that may be
# overridden (`Fault.status_override`): 404 where the path carries it, 406 where Accept does; and
# that of a brownout is the operator's choice.
FAULT_KINDS: Mapping[FaultCode, FaultKind] = MappingProxyType(
    {
        FaultCode.BAD_REQUEST: FaultKind(Blame.CLIENT, 400, "Malformed request"),
        FaultCode.NOT_FOUND: FaultKind(Blame.CLIENT, 404, "No such resource"),
        FaultCode.METHOD_NOT_ALLOWED: FaultKind(Blame.CLIENT, 405, "Method not allowed"),
        FaultCode.REQUEST_TIMEOUT: FaultKind(Blame.CLIENT, 408, "Request timed out"),
        FaultCode.BODY_TOO_LARGE: FaultKind(Blame.CLIENT, 413, "Body too large"),
        FaultCode.URI_TOO_LONG: FaultKind(Blame.CLIENT, 414, "Request target too long"),
        FaultCode.HEADERS_TOO_LARGE: FaultKind(Blame.CLIENT, 431, "Header fields too large"),
        FaultCode.EXPECTATION_FAILED: FaultKind(Blame.CLIENT, 417, "Expectation failed"),
        FaultCode.UNSUPPORTED_MEDIA_TYPE: FaultKind(Blame.CLIENT, 415, "Unsupported media type"),
        FaultCode.UNCONVERTIBLE_REQUEST: FaultKind(
            Blame.CLIENT, 400, "Request cannot be converted"
        ),
        FaultCode.VERSION_MISSING: FaultKind(Blame.CLIENT, 400, "Version missing"),
        FaultCode.VERSION_MALFORMED: FaultKind(Blame.CLIENT, 400, "Version malformed"),
        FaultCode.VERSION_UNKNOWN: FaultKind(Blame.CLIENT, 400, "Version not supported"),
        FaultCode.VERSION_CONFLICT: FaultKind(Blame.CLIENT, 400, "Versions contradict each other"),
        FaultCode.VERSION_RETIRED: FaultKind(Blame.CLIENT, 410, "Version retired"),
        FaultCode.VERSION_BROWNOUT: FaultKind(Blame.GATEWAY, 503, "Version browned out"),
        FaultCode.INTERNAL: FaultKind(Blame.GATEWAY, 500, "Internal error"),
        FaultCode.OVERLOADED: FaultKind(Blame.GATEWAY, 503, "Too many requests in flight"),
        FaultCode.UPSTREAM_UNAVAILABLE: FaultKind(Blame.UPSTREAM, 503, "No healthy backend"),
        FaultCode.UPSTREAM_UNREACHABLE: FaultKind(Blame.UPSTREAM, 502, "Backend unreachable"),
        FaultCode.UPSTREAM_PROTOCOL: FaultKind(Blame.UPSTREAM, 502, "Backend broke HTTP"),
        FaultCode.UPSTREAM_TIMEOUT: FaultKind(Blame.UPSTREAM, 504, "Backend too slow"),
        FaultCode.CONVERSION_FAILED: FaultKind(Blame.UPSTREAM, 502, "Response cannot be converted"),
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong with one request.

    Attributes:
        code: its stable name.
        detail: a sentence for the person who reads the response; holds no secret.
        supported: the version labels on offer, when the fault is about a version.
        fields: header fields that the response must carry, such as Allow and Retry-After.
        status_override: the status where the mechanism or the rules decide it, else None.
        successor: what to use instead, when the version is over or will be.
    """

    code: FaultCode
    detail: str
    supported: tuple[str, ...] | None = None
    fields: tuple[tuple[bytes, bytes], ...] = ()
    status_override: int | None = None
    successor: Mapping[str, object] | None = None

    @property
    def blame(self) -> Blame:
        """Whose fault it was."""
        return FAULT_KINDS[self.code].blame

    @property
    def status(self) -> int:
        """The status that the client gets."""
        return self.status_override or FAULT_KINDS[self.code].status

    def problem(self, instance: str) -> dict[str, object]:
        """Return the problem detail object; `instance` is the path that was asked for."""
        problem: dict[str, object] = {
            "type": f"urn:problem:{self.code}",
            "title": FAULT_KINDS[self.code].title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": str(self.code),
        }
        if self.supported is not None:
            problem["supportedVersions"] = list(self.supported)
        if self.successor is not None:
            problem["successor"] = dict(self.successor)
        return problem


class FaultError(Exception):
    """Carries a Fault from where it happened to where it is answered.

    Attributes:
        fault: what the client is told.
        cause: what the log is told beyond that, such as the address that failed.
    """

    def __init__(self, fault: Fault, cause: str = "") -> None:
        super().__init__(f"{fault.code}: {cause or fault.detail}")
        self.fault = fault
        self.cause = cause
