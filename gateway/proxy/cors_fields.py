"""Converts CORS header fields if client and service use different versions (Fetch, section 3.2).

The names in a preflight and its response are converted like the request that follows.
"""

from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import HeaderFields
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.operation_path import find_operation_path
from gateway.conversion.version_step import MessageKind
from gateway.proxy.exchange import Exchange
from gateway.proxy.links import asked
from gateway.routing.cors import PREFLIGHT, NamePair, allowed, exposed, name_pairs, requested
from gateway.routing.plan import Plan

_METHOD, _HEADERS = b"access-control-request-method", b"access-control-request-headers"
_ORIGIN, _CREDENTIALS = b"access-control-allow-origin", b"access-control-allow-credentials"
_ALLOWED, _EXPOSED = b"Access-Control-Allow-Headers", b"Access-Control-Expose-Headers"


def for_service(exchange: Exchange, plan: Plan, fields: HeaderFields) -> HeaderFields:
    """Convert the names in a preflight; raises FaultError if it names too many header fields."""
    operation_path, pairs = plan.operation_path, _asked_about(exchange, plan)
    if pairs:
        _check_number(fields, exchange.snapshot.limits.header_fields)
    mapped: HeaderFields = []
    for name, value in fields:
        lower = name.lower()
        if lower == _METHOD and operation_path is not None and operation_path.meant is not None:
            value = operation_path.meant.encode()
        elif lower == _HEADERS and pairs:
            value = ",".join(requested(_listed([value]), pairs)).encode("latin-1")
            if not value:  # no requested field is forwarded to the service
                continue
        mapped.append((name, value))
    return mapped


def for_preflight(exchange: Exchange, plan: Plan, fields: HeaderFields) -> HeaderFields:
    """Convert the header names that a service allows in its response to a preflight."""
    pairs = _asked_about(exchange, plan)
    if not pairs or not _is_allowed(fields):
        return fields
    names = _listed(_values(fields, _ALLOWED))
    return _with(fields, _ALLOWED, names, allowed(names, pairs))


def for_script(exchange: Exchange, plan: Plan, fields: HeaderFields) -> HeaderFields:
    """Convert the header names that a service exposes to scripts in its response."""
    if not _is_allowed(fields) or (response := plan.response) is None:
        return fields
    pairs = name_pairs(response, exchange.method, MessageKind.RESPONSE)
    if not pairs:
        return fields
    names = _listed(_values(fields, _EXPOSED))
    present = {name.decode("latin-1").lower() for name, _ in fields}
    return _with(fields, _EXPOSED, names, exposed(names, pairs, present))


def with_exposed(exchange: Exchange, fields: HeaderFields) -> HeaderFields:
    """Expose the header fields that the gateway adds, so that scripts can read them.

    The fields are exposed only if the service allows an origin. The service itself does not know
    these fields.
    """
    if not _is_allowed(fields):
        return fields
    given = [name for name in _listed(_values(fields, _EXPOSED)) if name]
    # If scripts may send credentials, `*` is not a wildcard (Fetch, section 3.2.4).
    if "*" in given and b"true" not in _values(fields, _CREDENTIALS):
        return fields
    known = {name.lower() for name in given}
    added = dict.fromkeys(name.decode("latin-1") for name, _ in exchange.fields)
    names = [*given, *(name for name in added if name.lower() not in known)]
    return _with(fields, _EXPOSED, given, names)


def _asked_about(exchange: Exchange, plan: Plan) -> tuple[NamePair, ...]:
    """Return the pairs of header names that the conversion renames in the announced request."""
    method, request = exchange.message.headers.get(PREFLIGHT), plan.route.request
    if method is None or request is None or plan.route.response is None:
        return ()
    if request.has_operations:
        try:
            conversions = request, plan.route.response
            request = find_operation_path(*conversions, method, *asked(exchange, plan)).request
        except ConversionError:  # the announced request will be refused
            return ()
    return name_pairs(request, method, MessageKind.REQUEST)


def _check_number(fields: HeaderFields, most: int) -> None:
    if sum(value.count(b",") + 1 for value in _values(fields, _HEADERS)) > most:
        detail = f"A preflight may name at most {most} header fields, the limit of a request."
        raise FaultError(Fault(FaultCode.HEADERS_TOO_LARGE, detail))


def _is_allowed(fields: HeaderFields) -> bool:
    return _ORIGIN in [name.lower() for name, _ in fields]


def _values(fields: HeaderFields, name: bytes) -> list[bytes]:
    lower = name.lower()
    return [value for other, value in fields if other.lower() == lower]


def _listed(values: list[bytes]) -> list[str]:
    members = (each.strip(b" \t") for value in values for each in value.split(b","))
    return [each.decode("latin-1") for each in members]


def _with(fields: HeaderFields, name: bytes, before: list[str], names: list[str]) -> HeaderFields:
    """Replace a header field that lists names; return the same fields if no name has changed."""
    if [each.lower() for each in names] == [each.lower() for each in before if each]:
        return fields
    lower = name.lower()
    kept = [line for line in fields if line[0].lower() != lower]
    return [*kept, (name, ", ".join(names).encode("latin-1"))] if names else kept
