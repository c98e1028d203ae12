"""Rights on the admin port: the sender of a request, the right it needs, and its audit entry.

GET, HEAD and OPTIONS need the right to read; other methods need the right to operate. The decorator
`needs` overrides this for a handler.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple, TypeVar

import msgspec
from aiohttp import web

from gateway.access.admin import Right
from gateway.findings.formatting import ANONYMOUS_TEXT
from gateway.rollout.decisions import ChangeRequest
from gateway.usage.totals import OTHERS

READING = frozenset({"GET", "HEAD", "OPTIONS"})
# The maximum length of a name and of a reason in the audit log, in characters.
_LONGEST = 200

_Handler = TypeVar("_Handler", bound=Callable[..., object])


class KnownBy(StrEnum):
    NOTHING = "nothing"
    COMMAND = "command"
    SIGN_ON = "sign_on"
    TOKEN = "token"  # noqa: S105  # not a secret
    SESSION = "session"


class Principal(NamedTuple):
    """`name` is the token's holder, the user, or a command's unverified user name; may be empty."""

    name: str
    right: Right | None
    by: KnownBy

    def may(self, right: Right) -> bool:
        return self.right is not None and self.right.includes(right)


PRINCIPAL: web.RequestKey[Principal] = web.RequestKey("principal", Principal)


def needs(right: Right | None) -> Callable[[_Handler], _Handler]:
    """Return a decorator that sets the right that a handler needs; None for no right.

    Requests to such a handler change nothing, so they need no form token.
    """

    def mark(handler: _Handler) -> _Handler:
        handler.right = right  # type: ignore[attr-defined]  # functions accept any attribute
        return handler

    return mark


def needed_right(request: web.Request) -> Right | None:
    if request.match_info.http_exception is not None:
        return None
    by_method = Right.READ if request.method in READING else Right.OPERATE
    right: Right | None = getattr(request.match_info.handler, "right", by_method)
    return right


def changes(request: web.Request) -> bool:
    return request.method not in READING and not hasattr(request.match_info.handler, "right")


async def order(request: web.Request) -> ChangeRequest:
    """Return who requests an action, from where, and why; raises AdminProblemError.

    The reason is in `?why=` or in the form field `why`. A command may omit the reason if the
    configuration has neither tokens nor sign-on.
    """
    principal = request[PRINCIPAL]
    why = printable(request.query.get("why") or await form_field(request, "why"))
    if not why and principal.by is not KnownBy.COMMAND:
        raise AdminProblemError(
            *(400, "reason_missing"),
            "an action needs a reason for the audit log; add --why TEXT, or ?why=TEXT to a request",
        )
    return ChangeRequest(principal.name or "(unnamed)", request.remote or "", why)


def asked_client(text: str) -> str:
    """Return the name of a client as views show it; raises AdminProblemError."""
    if text in ("", OTHERS):
        raise AdminProblemError(400, "bad_request", "name one client, as 'usage' shows it")
    return "" if text == ANONYMOUS_TEXT else text


async def form_field(request: web.Request, name: str) -> str:
    if request.content_type != "application/x-www-form-urlencoded":
        return ""
    found = (await request.post()).get(name, "")
    return found if isinstance(found, str) else ""


def printable(text: str) -> str:
    """Return the printable characters of a name or a reason, truncated to 200 characters."""
    return "".join(letter for letter in text if letter.isprintable())[:_LONGEST].strip()


JSON = "application/json"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AdminProblemError(Exception):
    """A request fails; the message of this error becomes the `detail` of the problem detail."""

    def __init__(
        self, status: int, code: str, detail: str, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.fields = fields or {}


class AccessDeniedError(AdminProblemError):
    """A request is refused because of its sender or its form token; counted by `code`."""


def problem(request: web.BaseRequest, status: int, code: str, detail: str) -> web.Response:
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
    return web.Response(body=msgspec.json.encode(document), status=status, content_type=kind)
