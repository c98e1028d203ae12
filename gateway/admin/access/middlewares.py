"""The middlewares of the admin port: problem details and the checks of each request.

Any web page in a browser on an operator's machine can send requests to the port: with a host name
that resolves to 127.0.0.1 (DNS rebinding), or with a form that posts to another site. Both are
detected by the headers Host, Origin and Sec-Fetch-Site, which browsers always send.
"""

import asyncio
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware
from aiohttp.web_protocol import RequestPayloadError

from gateway.access.admin import Right
from gateway.admin.access.authentication import Authentication
from gateway.admin.access.connections import REQUEST_SECONDS, Places
from gateway.admin.access.rights import (
    PRINCIPAL,
    AccessDeniedError,
    AdminProblemError,
    Handler,
    KnownBy,
    Principal,
    changes,
    needed_right,
    problem,
)
from gateway.admin.access.sessions import check_form, login_page, set_form_cookie
from gateway.base.urls import is_address
from gateway.findings.operator import Operator
from gateway.store.state import StateBusyError, StateError, StateUnsureError, UnknownReplicaError

# Health probes request these paths with any host name. The responses reveal nothing confidential.
_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
# At most _LARGE_BODIES bodies of more than _SMALL bytes are in memory at a time. The largest valid
# body is a configuration draft of 1 MiB.
_SMALL = 16 * 1024
_LARGE_BODIES = 4
# Retry-After in seconds: how long reading the totals of a large fleet may take.
_RETRY_AFTER = "10"
_PROBLEMS = AdminProblemError, UnknownReplicaError, StateError, TimeoutError, web.HTTPException


def access_middlewares(
    operator: Operator, authentication: Authentication, hosts: Collection[str]
) -> list[Middleware]:
    """Return the middlewares, the outermost first; see `admin_app` for `hosts`."""
    names = frozenset(host.lower() for host in hosts)
    places = Places[asyncio.Task[object]](_LARGE_BODIES)

    @web.middleware
    async def answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await handler(request)
        except AccessDeniedError as error:
            operator.count("admin_refusals", error.code)
            if error.status == 401 and "text/html" in request.headers.get("Accept", ""):
                target = request.path_qs if request.method == "GET" else "/"
                response = login_page(request, target, error)
            else:
                response = error_response(request, error)
        except _PROBLEMS as error:
            response = error_response(request, error)
        set_form_cookie(request, response)
        return response

    @web.middleware
    async def check_access(request: web.Request, handler: Handler) -> web.StreamResponse:
        found, right = request.match_info.http_exception is None, needed_right(request)
        if found and request.path not in _OPEN_PATHS:
            _check_host(request.host, names)
            _check_origin(request)
        principal = None
        if right is not None:
            principal = request[PRINCIPAL] = authentication.identify(request)
            if not principal.may(right):
                raise _forbidden(principal, right)
        if found and request.body_exists:
            if _may_be_large(request, right) and _take_place(request, places):
                operator.count("admin_bounds", "bodies")
            await _read_body(request)
        in_browser = principal is not None and principal.by in (KnownBy.SIGN_ON, KnownBy.SESSION)
        if in_browser and changes(request):
            await check_form(request)
        return await handler(request)

    return [answer_problems, check_access]


def error_response(request: web.Request, error: Exception) -> web.Response:
    detail, fields = str(error), dict[str, str]()
    match error:
        case AdminProblemError():
            status, code, fields = error.status, error.code, dict(error.fields)
        case UnknownReplicaError():
            status, code = 404, "not_found"
        case StateBusyError():  # the action may have succeeded; only reading its result failed
            status, code, fields = 503, "state_busy", {"Retry-After": _RETRY_AFTER}
            detail += _outcome(request, sure=False)
        case StateError():
            status, code = 503, "state_unavailable"
            detail += _outcome(request, sure=not isinstance(error, StateUnsureError))
        case TimeoutError():
            status, code = 504, "worker_timeout"
            detail = (
                "A worker has not confirmed the change in time; the worker applies it as"
                " soon as it can."
            )
        case web.HTTPMethodNotAllowed():
            status, code = 405, "method_not_allowed"
            fields = {"Allow": ", ".join(sorted(error.allowed_methods))}
            detail = f"This path accepts {fields['Allow']}."
        case web.HTTPNotFound():
            status, code, detail = 404, "not_found", "This port serves nothing at this path."
        case _:
            assert isinstance(error, web.HTTPException)
            status, detail = error.status, f"{error.reason}."
            code = HTTPStatus(status).phrase.lower().replace(" ", "_")
    response = problem(request, status, code, detail)
    response.headers.update(fields)
    return response


def _outcome(request: web.Request, *, sure: bool) -> str:
    if request.method in ("GET", "HEAD"):
        return ""
    return "; nothing was changed" if sure else "; it may have been changed: check the state"


def _check_host(authority: str, names: Collection[str]) -> None:
    try:
        host = urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        raise AccessDeniedError(400, "bad_request", "the Host header is not a valid host") from None
    # An attacker cannot register any of these names in public DNS.
    own = host in names or "." not in host or host.endswith(".localhost") or is_address(host)
    if not own:
        detail = (
            f"'{host}' is not a host name of this port; add it to GATEWAY_ADMIN_HOSTS, or use an"
        )
        raise AccessDeniedError(421, "misdirected_request", f"{detail} address")


def _check_origin(request: web.Request) -> None:
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    try:
        foreign = origin is not None and urlsplit(origin).netloc.lower() != request.host.lower()
    except ValueError:
        foreign = True
    # Following a link is allowed, for example from a chat message. The linking site cannot read the
    # page that opens.
    fetch = request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest")
    follows_link = request.method == "GET" and fetch == ("navigate", "document")
    if foreign or (site in ("cross-site", "same-site") and not follows_link):
        detail = "requests from pages of other sites are refused"
        raise AccessDeniedError(403, "foreign_origin", detail)


def _forbidden(principal: Principal, right: Right) -> AccessDeniedError:
    who = f"{principal.name} has" if principal.name else "without a token, you have"
    group = "operators" if right is Right.OPERATE else "readers"
    hints = {
        KnownBy.NOTHING: "add one to 'admin' in the configuration, or use the commands on the"
        " machine of the gateway",
        KnownBy.SIGN_ON: (
            f"only groups listed in 'admin.sign_on.{group}' in the configuration have it"
        ),
    }
    hint = hints.get(principal.by, f"use a token with the right to {right}")
    return AccessDeniedError(403, "forbidden", f"{who} no right to {right}; {hint}")


def _may_be_large(request: web.Request, right: Right | None) -> bool:
    length = request.content_length  # None with chunked transfer coding
    large = length is None or length > _SMALL
    if large and right is None:
        detail = "a request body for this path needs a Content-Length of at most 16 KiB"
        raise AccessDeniedError(413, "body_too_large", detail)
    return large


def _take_place(request: web.Request, places: Places[asyncio.Task[object]]) -> bool:
    """Return whether another request with a large body was cancelled to free memory."""
    task = asyncio.current_task()
    assert task is not None
    lost = places.take(task, request.remote or "")
    task.add_done_callback(places.leave)
    if lost is not None:
        lost.cancel()  # cancelling closes the connection
    return lost is not None


async def _read_body(request: web.Request) -> None:
    try:
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ValueError("it is coded")
        async with asyncio.timeout(REQUEST_SECONDS) as limit:
            await request.read()
        await request.post()
    except TimeoutError:
        if not limit.expired():
            raise
        detail = f"the body did not arrive within {REQUEST_SECONDS:g} seconds"
        raise AccessDeniedError(408, "request_timeout", detail) from None
    # The body or its form is malformed, its charset is unknown (LookupError), or the client has
    # disconnected (RuntimeError).
    except (RequestPayloadError, LookupError, ValueError, RuntimeError):
        detail = "the body cannot be read; send a form in UTF-8, without a content coding"
        raise AccessDeniedError(400, "bad_request", detail) from None
