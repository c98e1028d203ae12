"""The answers of the admin port that are no reports: problem details (RFC 9457)."""

from http import HTTPStatus

import msgspec
from aiohttp import web

from gateway.admin.access.admin_guard import AdminProblemError, Handle
from gateway.store.state import StateBusyError, StateError, StateUnsureError, UnknownReplicaError

JSON = "application/json"
# As long as the sums of a large fleet take to read, in seconds.
_RETRY_AFTER = "10"


@web.middleware
async def problems(request: web.Request, handler: Handle) -> web.StreamResponse:
    """Answer what is refused with a problem detail."""
    try:
        return await handler(request)
    except AdminProblemError as error:
        answer = problem(request, error.status, error.code, str(error))
        answer.headers.update(error.fields)
        return answer
    except UnknownReplicaError as error:
        return problem(request, 404, "not_found", str(error))
    except StateBusyError as error:
        # An act has no need of a turn; what is shown after it has.
        answer = problem(request, 503, "state_busy", f"{error}{_outcome(request, sure=False)}")
        answer.headers["Retry-After"] = _RETRY_AFTER
        return answer
    except StateError as error:
        sure = not isinstance(error, StateUnsureError)
        detail = f"{error}{_outcome(request, sure=sure)}"
        return problem(request, 503, "state_unavailable", detail)
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
    """Return what became of an act that failed; nothing of a read."""
    if request.method in ("GET", "HEAD"):
        return ""
    return "; nothing was changed" if sure else "; it may have been changed: look how it stands"


def problem(request: web.Request, status: int, code: str, detail: str) -> web.Response:
    """Return a problem detail (RFC 9457)."""
    document = {
        "type": f"urn:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.path,
        "code": code,
    }
    return json_answer(document, status, "application/problem+json")


def json_answer(document: object, status: int = 200, kind: str = JSON) -> web.Response:
    """Return an answer with a document as JSON."""
    return web.Response(body=msgspec.json.encode(document), status=status, content_type=kind)
