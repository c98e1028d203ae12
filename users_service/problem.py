"""Refusals outside the contract, as RFC 9457 problem details."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

from aiohttp import web
from pydantic import BaseModel

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem; `code` is stable and meant for programs."""

    status: HTTPStatus
    code: str
    title: str


BAD_HTTP = Kind(HTTPStatus.BAD_REQUEST, "bad_http", "The request is not valid HTTP/1.1")
BODY_INCOMPLETE = Kind(HTTPStatus.BAD_REQUEST, "body_incomplete", "The body broke off")
BODY_TIMEOUT = Kind(HTTPStatus.REQUEST_TIMEOUT, "body_timeout", "The body came too slowly")
MALFORMED_JSON = Kind(HTTPStatus.BAD_REQUEST, "malformed_json", "The body is not acceptable JSON")
NOT_FOUND = Kind(HTTPStatus.NOT_FOUND, "not_found", "Nothing is at this path")
USER_NOT_FOUND = Kind(HTTPStatus.NOT_FOUND, "user_not_found", "There is no such user")
METHOD_NOT_ALLOWED = Kind(
    HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", "This method is not possible here"
)
BODY_TOO_LARGE = Kind(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", "The body is larger than the limit"
)
UNSUPPORTED_MEDIA_TYPE = Kind(
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "unsupported_media_type",
    "The body must be application/json in UTF-8",
)
UNSUPPORTED_ENCODING = Kind(
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", "The body must not be encoded"
)
INTERNAL_ERROR = Kind(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", "The fault is ours")
STORAGE_UNAVAILABLE = Kind(
    HTTPStatus.SERVICE_UNAVAILABLE, "storage_unavailable", "Users cannot be reached now"
)


class ProblemError(Exception):
    """Ends a request with a problem of that kind; raised where the reason is found."""

    def __init__(self, kind: Kind, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{kind.code}: {detail}")
        self.kind = kind
        self.detail = detail
        self.headers = headers


class Problem(BaseModel, frozen=True):
    """Why a request was refused."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str


def answer(error: ProblemError, path: str) -> web.Response:
    """Make the response that tells the client.

    `path` is the request's as it was received; `instance` must be a URI reference, so what
    a URI cannot hold is percent-encoded.
    """
    kind = error.kind
    problem = Problem(
        type=f"urn:problem:{kind.code}",
        title=kind.title,
        status=kind.status,
        detail=error.detail,
        instance=quote(path, safe="/%:@!$&'()*+,;=", errors="surrogateescape"),
        code=kind.code,
    )
    return web.Response(
        status=kind.status,
        body=problem.model_dump_json().encode(),
        content_type=CONTENT_TYPE,
        headers=error.headers,
    )
