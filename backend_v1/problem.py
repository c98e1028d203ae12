"""Errors as RFC 9457 problem details."""

from http import HTTPStatus
from urllib.parse import quote

from pydantic import BaseModel

CONTENT_TYPE = "application/problem+json"


class Problem(BaseModel, frozen=True):
    """Why a request was refused; `code` is stable and meant for programs."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str

    @classmethod
    def of(cls, status: HTTPStatus, detail: str, path: str) -> "Problem":
        """Describe a refusal that says no more than its status does (RFC 9457, section 4.2.1).

        `path` is the request's as it was received; `instance` must be a URI reference, so what
        a URI cannot hold is percent-encoded.
        """
        return cls(
            type="about:blank",
            title=status.phrase,
            status=status,
            detail=detail,
            instance=quote(path, safe="/%:@!$&'()*+,;=", errors="surrogateescape"),
            code=status.name.lower(),
        )
