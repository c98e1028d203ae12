"""The middlewares of the admin port, in the order in which they run.

A browser on the machine of an operator reaches the port for any page that it shows: by a host name
of that page that resolves to 127.0.0.1 (DNS rebinding), or by a form that posts across sites. The
fields that browsers always send, Host, Origin and Sec-Fetch-Site, tell both.
"""

import asyncio
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware
from aiohttp.web_protocol import RequestPayloadError

from gateway.access.admin import Right
from gateway.admin.access.authentication import (
    Authentication,
    check_form,
    login_page,
    set_form_cookie,
)
from gateway.admin.access.connections import REQUEST_SECONDS, AdminConnection, Places
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
from gateway.base.urls import is_address
from gateway.findings.operator import Operator
from gateway.store.state import StateBusyError, StateError, StateUnsureError, UnknownReplicaError

# Probes request these by any host name, and the responses reveal nothing.
_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
# The number of larger bodies that are held at a time; the body of a draft has at most 1 MiB.
_SMALL = 16 * 1024
_LARGE_BODIES = 4
# The seconds in which the totals of a large fleet are read.
_RETRY_AFTER = "10"


def access_middlewares(
    operator: Operator, authentication: Authentication, hosts: Collection[str]
) -> list[Middleware]:
    """Return the middlewares.

    Args:
        hosts: host names of the port beside addresses, `localhost` and names without a dot.
    """
    names = frozenset(host.lower() for host in hosts)
    places = Places[asyncio.Task[object]](_LARGE_BODIES)

    @web.middleware
    async def count_denied(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count denied requests, and show the login to browsers."""
        try:
            return await handler(request)
        except AccessDeniedError as error:
            operator.count("admin_refusals", error.code)
            if error.status != 401 or "text/html" not in request.headers.get("Accept", ""):
                raise
            return login_page(request, request.path_qs if request.method == "GET" else "/", error)

    @web.middleware
    async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse host names that a stranger may have registered."""
        if _is_guarded(request):
            _check_host(request.host, names)
        return await handler(request)

    @web.middleware
    async def check_rights(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Identify the sender, and refuse what they may not do."""
        right = needed_right(request)
        if right is not None:
            principal = request[PRINCIPAL] = authentication.identify(request)
            if not principal.may(right):
                raise _forbidden(principal, right)
        return await handler(request)

    @web.middleware
    async def read_body(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Read the body, after its sender is known."""
        if request.match_info.http_exception is None and request.body_exists:
            if _may_be_large(request) and _take_place(request, places):
                operator.count("admin_bounds", "bodies")
            await _read_body(request)
        return await handler(request)

    return [
        problem_details,
        set_form_token,
        count_denied,
        note_request,
        check_host,
        check_origin,
        check_rights,
        read_body,
        check_form_token,
    ]


@web.middleware
async def problem_details(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except AdminProblemError as error:
        answer = problem(request, error.status, error.code, str(error))
        answer.headers.update(error.fields)
        return answer
    except UnknownReplicaError as error:
        return problem(request, 404, "not_found", str(error))
    except StateBusyError as error:  # an action needs no turn, but its result does
        answer = problem(request, 503, "state_busy", f"{error}{_outcome(request, sure=False)}")
        answer.headers["Retry-After"] = _RETRY_AFTER
        return answer
    except StateError as error:
        outcome = _outcome(request, sure=not isinstance(error, StateUnsureError))
        return problem(request, 503, "state_unavailable", f"{error}{outcome}")
    except TimeoutError:
        detail = "A worker has not confirmed the change in time; it applies it as soon as it can."
        return problem(request, 504, "worker_timeout", detail)
    except web.HTTPMethodNotAllowed as error:
        allow = ", ".join(sorted(error.allowed_methods))
        answer = problem(request, 405, "method_not_allowed", f"This path answers {allow}.")
        answer.headers["Allow"] = allow
        return answer
    except web.HTTPNotFound:
        return problem(request, 404, "not_found", "This port has nothing at this address.")
    except web.HTTPException as error:
        code = HTTPStatus(error.status).phrase.lower().replace(" ", "_")
        return problem(request, error.status, code, f"{error.reason}.")


def _outcome(request: web.Request, *, sure: bool) -> str:
    """Return what a failed action has changed; nothing for a read."""
    if request.method in ("GET", "HEAD"):
        return ""
    return "; nothing was changed" if sure else "; it may have been changed: look how it stands"


@web.middleware
async def set_form_token(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Set the cookie of a page with a new form token."""
    response = await handler(request)
    set_form_cookie(request, response)
    return response


@web.middleware
async def note_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """End the time for the first request of a connection."""
    if isinstance(request.protocol, AdminConnection):
        request.protocol.has_request = True
    return await handler(request)


def _is_guarded(request: web.Request) -> bool:
    return request.match_info.http_exception is None and request.path not in _OPEN_PATHS


def _check_host(authority: str, names: Collection[str]) -> None:
    try:
        host = urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        raise AccessDeniedError(400, "bad_request", "the field Host is no host") from None
    # A stranger can register none of these.
    own = host in names or "." not in host or host.endswith(".localhost") or is_address(host)
    if not own:
        raise AccessDeniedError(
            *(421, "misdirected_request"),
            f"'{host}' is not a name of this port; name it in GATEWAY_ADMIN_HOSTS, or use an"
            " address",
        )


@web.middleware
async def check_origin(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests of pages of other sites."""
    if _is_guarded(request):
        origin = request.headers.get("Origin")
        foreign = origin is not None and not _is_of(origin, request.host)
        across = request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
        if foreign or (across and not _follows_link(request)):
            detail = "a page of another site may not ask this"
            raise AccessDeniedError(403, "foreign_origin", detail)
    return await handler(request)


def _is_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _follows_link(request: web.Request) -> bool:
    # A link in a message opens a new tab, whose content the sender cannot read.
    fetch = request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest")
    return request.method == "GET" and fetch == ("navigate", "document")


def _forbidden(principal: Principal, right: Right) -> AccessDeniedError:
    who = f"{principal.name} has" if principal.name else "without a token, you have"
    what = "not even the right to read" if principal.right is None else f"no right to {right}"
    groups = {Right.READ: "readers", Right.OPERATE: "operators"}
    hints = {
        KnownBy.NOTHING: "; name one in 'admin' in the rules, or use the commands on the machine of"
        " the gateway",
        KnownBy.SIGN_ON: f"; only groups of 'admin.sign_on.{groups[right]}' in the rules have it",
    }
    hint = hints.get(principal.by, f"; ask by a token with the right to {right}")
    return AccessDeniedError(403, "forbidden", f"{who} {what}{hint}")


def _may_be_large(request: web.Request) -> bool:
    length = request.content_length  # None for chunks
    if length is not None and length <= _SMALL:
        return False
    if needed_right(request) is None:
        detail = "a body of this path has 16 KiB at most, and says its length"
        raise AccessDeniedError(413, "body_too_large", detail)
    return True


def _take_place(request: web.Request, places: Places[asyncio.Task[object]]) -> bool:
    """Hold a large body until it is answered; return whether it replaces another one."""
    task = asyncio.current_task()
    assert task is not None
    lost = places.take(task, request.remote or "")
    task.add_done_callback(places.leave)
    if lost is not None:
        lost.cancel()  # which closes its connection
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
        detail = f"the body was not there within {REQUEST_SECONDS:g} seconds"
        raise AccessDeniedError(408, "request_timeout", detail) from None
    # Malformed bytes or form, an unknown charset (LookupError), or a client that has left already
    # (RuntimeError).
    except (RequestPayloadError, LookupError, ValueError, RuntimeError):
        detail = "the body cannot be read; send a form in UTF-8, without a content coding"
        raise AccessDeniedError(400, "bad_request", detail) from None


@web.middleware
async def check_form_token(request: web.Request, handler: Handler) -> web.StreamResponse:
    principal = request.get(PRINCIPAL)
    if (
        principal is not None
        and changes(request)
        and principal.by in (KnownBy.SIGN_ON, KnownBy.SESSION)
    ):
        await check_form(request)
    return await handler(request)
