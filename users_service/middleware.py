"""What happens around every request: it gets an id, refusals become problems, a line is logged."""

import re
import uuid
from collections.abc import Mapping
from time import perf_counter

from aiohttp import web
from aiohttp.typedefs import Handler

from .log import logger
from .problem import INTERNAL_ERROR, NOT_FOUND, STORAGE_UNAVAILABLE, ProblemError, answer
from .store import StorageError

HEALTH = ("/healthz", "/readyz")
SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")


def request_id(headers: Mapping[str, str]) -> str:
    """Return the id that the request came with, if it is sane, or else a new one."""
    given = headers.get("X-Request-Id", "")
    return given if SANE_REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


@web.middleware
async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer with what the handler returns, or with a problem for what it raises."""
    start = perf_counter()
    path = request.rel_url.raw_path
    fields = {
        "request_id": request_id(request.headers),
        "method": request.method,
        "path": path,
    }
    try:
        response = await handler(request)
    except ProblemError as problem:
        response = answer(problem, path)
    except web.HTTPNotFound:  # of aiohttp's router, where the target is no path: OPTIONS *
        response = answer(ProblemError(NOT_FOUND, "See /openapi.json for what there is."), path)
    except StorageError as error:
        logger.warning("storage_unavailable", extra={"fields": {**fields, "error": str(error)}})
        retry = {"Retry-After": "1"}
        response = answer(ProblemError(STORAGE_UNAVAILABLE, "Try again soon.", retry), path)
    except Exception:
        logger.exception("failed", extra={"fields": fields})
        response = answer(ProblemError(INTERNAL_ERROR, "It was logged."), path)
    response.headers["X-Request-Id"] = fields["request_id"]
    if path not in HEALTH:
        milliseconds = round((perf_counter() - start) * 1000, 3)
        outcome = {"status": response.status, "duration_ms": milliseconds}
        logger.info("request", extra={"fields": fields | outcome})
    return response
