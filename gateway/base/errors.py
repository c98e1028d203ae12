"""Faults: the error responses that the gateway itself creates.

The code of a fault determines its status and its blame; only this module chooses error statuses.
The response body is a problem detail (RFC 9457).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import Self


class Blame(Enum):
    CLIENT = "client"
    GATEWAY = "gateway"
    UPSTREAM = "upstream"


class FaultCode(StrEnum):
    """The table of faults: code, blame, status, title, and condition for docs/errors.md.

    The codes are part of the public contract. `Fault.status_override` replaces the status in three
    cases. The status of a fault about a version depends on the mechanism that carries the version,
    such as 404 for the path. The operator configures the statuses of a brownout and of a missing
    operation.
    """

    blame: Blame
    usual_status: int
    problem_title: str
    when: str

    def __new__(
        cls,
        value: str,
        blame: Blame = Blame.GATEWAY,
        status: int = 500,
        title: str = "",
        when: str = "",
    ) -> Self:
        """Create a member; a lookup by value passes only `value`."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.blame, member.usual_status = blame, status
        member.problem_title, member.when = title, when
        return member

    # fmt: off
    BAD_REQUEST = (
        "bad_request", Blame.CLIENT, 400, "Malformed request",
        ("The request is not valid HTTP/1.1, or a service could read one of its fields as another "
        "request."),
    )
    NOT_FOUND = (
        "not_found", Blame.CLIENT, 404, "No such resource",
        "No endpoint has this path; paths match exactly.",
    )
    METHOD_NOT_ALLOWED = (
        "method_not_allowed", Blame.CLIENT, 405, "Method not allowed",
        ("The endpoint does not support the method; Allow lists the supported methods. Also TRACE "
        "with Max-Forwards: 0, whose response could show credentials."),
    )
    REQUEST_TIMEOUT = (
        "request_timeout", Blame.CLIENT, 408, "Request timed out",
        "The header fields or the body arrived too slowly.",
    )
    BODY_TOO_LARGE = (
        "body_too_large", Blame.CLIENT, 413, "Body too large",
        "The body exceeds max_body of the endpoint or a limit.",
    )
    URI_TOO_LONG = (
        "uri_too_long", Blame.CLIENT, 414, "Request target too long",
        "The request target exceeds limits.target.",
    )
    HEADERS_TOO_LARGE = (
        "headers_too_large", Blame.CLIENT, 431, "Header fields too large",
        "The header fields exceed limits.header_bytes or limits.header_fields.",
    )
    EXPECTATION_FAILED = (
        "expectation_failed", Blame.CLIENT, 417, "Expectation failed",
        "Expect asks for something other than 100-continue.",
    )
    UNSUPPORTED_MEDIA_TYPE = (
        "unsupported_media_type", Blame.CLIENT, 415, "Unsupported media type",
        ("A body to convert has a media type, charset or content coding that the gateway does "
        "not read."),
    )
    UNCONVERTIBLE_REQUEST = (
        "unconvertible_request", Blame.CLIENT, 400, "Request cannot be converted",
        ("The request does not fit the version it was sent for; the detail names the location. "
        "Also a WebSocket whose messages would have to be converted."),
    )
    PRECONDITION_FAILED = (
        "precondition_failed", Blame.CLIENT, 412, "Precondition failed",
        ("A write to be merged has an If-Match that does not match the document that the gateway "
        "has read, or If-None-Match: * although the document exists."),
    )
    WRITE_CONFLICT = (
        "write_conflict", Blame.CLIENT, 409, "Concurrent write",
        ("The document was changed while a write was merged, twice in a row. Nothing was written; "
        "the client may send the write again."),
    )
    WRITE_UNMERGEABLE = (
        "write_unmergeable", Blame.CLIENT, 409, "Write cannot be merged",
        ("A write cannot be merged without losing data that the client's version cannot see, or a "
        "`test` of its JSON Patch fails. The detail names the location."),
    )
    WRITE_DENIED = (
        "write_denied", Blame.CLIENT, 403, "Document not readable",
        ("The client may not read the document that its write would be merged into: the service "
        "responds to the read with 401 or 403, which is also the status of this error."),
    )
    WRITE_UNREAD = (
        "write_unread", Blame.UPSTREAM, 502, "Document not read",
        ("The document that a write would be merged into cannot be read: the service fails or "
        "sends no JSON document or no strong entity tag. The detail has the reason."),
    )
    OPERATION_MISSING = (
        "operation_missing", Blame.CLIENT, 404, "Operation no longer offered",
        "The version of the service lacks the operation; `refuse` may set another status.",
    )
    VERSION_MISSING = (
        "version_missing", Blame.CLIENT, 400, "Version missing",
        "The request names no version, and there is no default.",
    )
    VERSION_MALFORMED = (
        "version_malformed", Blame.CLIENT, 400, "Version malformed",
        ("The version is not written in the format of the API, or another parameter "
        "resembles the version parameter."),
    )
    VERSION_UNKNOWN = (
        "version_unknown", Blame.CLIENT, 400, "Version not supported",
        "The API or the endpoint has no such version; the response lists the supported ones.",
    )
    VERSION_CONFLICT = (
        "version_conflict", Blame.CLIENT, 400, "Versions contradict each other",
        "Two parts of the request name different versions.",
    )
    VERSION_RETIRED = (
        "version_retired", Blame.CLIENT, 410, "Version retired",
        "The sunset of the version has passed; `successor` names the version to use instead.",
    )
    UNAUTHENTICATED = (
        "unauthenticated", Blame.CLIENT, 401, "Credential missing or invalid",
        ("`access` requires a credential, and the request has none or an invalid one; the detail "
        "says which. WWW-Authenticate names the accepted kinds."),
    )
    INSUFFICIENT_SCOPE = (
        "insufficient_scope", Blame.CLIENT, 403, "Scope missing",
        "The credential is valid, but lacks a scope that `access` requires.",
    )
    ACCESS_DENIED = (
        "access_denied", Blame.CLIENT, 403, "Access denied",
        "The credential is valid, but `access` does not list its client.",
    )
    KEYS_UNAVAILABLE = (
        "keys_unavailable", Blame.GATEWAY, 503, "Token cannot be verified",
        "The keys that verify a token could not be fetched yet; Retry-After is set.",
    )
    DOCUMENT_UNAVAILABLE = (
        "document_unavailable", Blame.GATEWAY, 503, "Document not loaded",
        ("The OpenAPI document of the version is not loaded yet, and the gateway would send fields "
        "that `additional` hides, or that `writes` removes; Retry-After is set."),
    )
    VERSION_BROWNOUT = (
        "version_brownout", Blame.GATEWAY, 503, "Version browned out",
        ("A brownout refuses the request; Retry-After covers adjacent windows. The status may be "
        "410."),
    )
    RATE_LIMITED = (
        "rate_limited", Blame.CLIENT, 429, "Too many requests",
        ("A limit of `rate_limits` is exceeded; Retry-After is set, and `violated-policies` names "
        "the limits."),
    )
    INTERNAL = (
        "internal", Blame.GATEWAY, 500, "Internal error",
        "The gateway failed; the log has the cause.",
    )
    OVERLOADED = (
        "overloaded", Blame.GATEWAY, 503, "Too many requests in flight",
        "Too many clients, tunnels, requests in flight, or bodies being converted.",
    )
    GATEWAY_EXHAUSTED = (
        "gateway_exhausted", Blame.GATEWAY, 503, "Gateway cannot connect",
        ("The gateway's machine lacks a local port, file descriptor or memory for a connection. "
        "The failure counts neither against the target nor in gates; "
        "Retry-After is set."),
    )
    UPSTREAM_UNAVAILABLE = (
        "upstream_unavailable", Blame.UPSTREAM, 503, "No healthy backend",
        "No target of the service is healthy.",
    )
    UPSTREAM_UNREACHABLE = (
        "upstream_unreachable", Blame.UPSTREAM, 502, "Backend unreachable",
        "The service refuses or resets the connection.",
    )
    UPSTREAM_PROTOCOL = (
        "upstream_protocol", Blame.UPSTREAM, 502, "Backend broke HTTP",
        "The service breaks HTTP before its response head is complete.",
    )
    UPSTREAM_TIMEOUT = (
        "upstream_timeout", Blame.UPSTREAM, 504, "Backend too slow",
        "The service exceeds one of its timeouts.",
    )
    CONVERSION_FAILED = (
        "conversion_failed", Blame.UPSTREAM, 502, "Response cannot be converted",
        "A response cannot be converted to the client's version, so nothing of it is sent.",
    )
    # fmt: on


BEFORE_VERSION: frozenset[FaultCode] = frozenset(
    {
        FaultCode.NOT_FOUND,
        FaultCode.URI_TOO_LONG,
        FaultCode.HEADERS_TOO_LARGE,
        FaultCode.VERSION_MISSING,
        FaultCode.VERSION_MALFORMED,
        FaultCode.VERSION_UNKNOWN,
        FaultCode.VERSION_CONFLICT,
    }
)
"""The faults that can occur before the version of a request is known."""


# draft-ietf-httpapi-ratelimit-headers-10, section 5.1
_QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of one request, and the response to it.

    Attributes:
        supported: The labels of the supported versions; None if the fault is not about a version.
        fields: The header fields that the response must have, such as Allow and Retry-After.
        successor: The version to use instead, as members of the problem detail; None if the version
            does not end or has no successor.
        misfit: For a request that does not fit its version: the `field`, its JSON Pointer
            (`pointer`) if the field is in the body, and the `reason`. None for all other faults.
        own: Further members of the problem detail, or other values of its members.
    """

    code: FaultCode
    detail: str
    supported: tuple[str, ...] | None = None
    fields: tuple[tuple[bytes, bytes], ...] = ()
    status_override: int | None = None
    successor: Mapping[str, object] | None = None
    misfit: Mapping[str, str] | None = None
    own: Mapping[str, str | int] = field(default_factory=dict)
    violated: tuple[str, ...] = ()

    @property
    def blame(self) -> Blame:
        return self.code.blame

    @property
    def status(self) -> int:
        return self.status_override or self.code.usual_status

    def problem(self, instance: str) -> dict[str, object]:
        """Return the problem detail object (RFC 9457); `instance` is the path of the request."""
        problem: dict[str, object] = {
            "type": f"urn:problem:{self.code}",
            "title": self.code.problem_title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": str(self.code),
        }
        if self.supported is not None:
            problem["supportedVersions"] = list(self.supported)
        if self.successor is not None:
            problem["successor"] = dict(self.successor)
        if self.violated:
            problem["type"] = _QUOTA_EXCEEDED
            problem["violated-policies"] = list(self.violated)
        return problem


def temporary_fault(code: FaultCode, detail: str, seconds: int = 1) -> Fault:
    """Return a fault with Retry-After, after whose seconds the request may succeed."""
    return Fault(code, detail, fields=((b"Retry-After", b"%d" % seconds),))


def operation_missing(
    status: int,
    usual: str,
    detail: str = "",
    code: str | int | None = None,
    methods: Sequence[str] = (),
) -> Fault:
    """Return the fault for an operation that the version of the service lacks.

    Args:
        methods: the methods that the client's version has at the path, for a refusal with 405.
    """
    own = {"detail": detail or None, "code": code}
    given = {name: value for name, value in own.items() if value is not None}
    if status == 405:
        fault = method_not_allowed(", ".join(methods))
        return replace(fault, detail=detail or (fault.detail if methods else usual), own=given)
    missing = FaultCode.OPERATION_MISSING
    return Fault(missing, detail or usual, status_override=status, own=given)


def method_not_allowed(allow: str) -> Fault:
    fields = ((b"Allow", allow.encode()),)
    return Fault(FaultCode.METHOD_NOT_ALLOWED, f"This endpoint answers {allow}.", fields=fields)


def unconvertible(error: object, misfit: Mapping[str, str] | None = None) -> Fault:
    detail = f"The request does not fit this version: {error}."
    return Fault(FaultCode.UNCONVERTIBLE_REQUEST, detail, misfit=misfit)


def conversion_failed(error: object) -> Fault:
    detail = f"The backend's response cannot be converted to this version: {error}."
    return Fault(FaultCode.CONVERSION_FAILED, detail)


class FaultError(Exception):
    """The exception that carries a Fault to the pipeline.

    Attributes:
        cause: Details for the log only, such as the address that failed.
        target: The address of the failed target; None if no target failed.
    """

    def __init__(self, fault: Fault, cause: str = "", target: str | None = None) -> None:
        super().__init__(f"{fault.code}: {cause or fault.detail}")
        self.fault = fault
        self.cause = cause
        self.target = target


class FunctionError(Exception):
    """`reason` is for the client; `cause`, for the log, follows the name of the function."""

    def __init__(
        self, reason: str = "the Python function rejected the value", cause: str = ""
    ) -> None:
        super().__init__(cause)
        self.reason, self.cause = reason, cause
