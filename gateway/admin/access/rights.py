"""Rights: who asks on the admin port, and what they may do.

A request is checked before its handler runs. What it needs follows from its method, GET to read and
any other to operate, unless its handler is marked with `needs`.

    principal(request)             who asks: a Principal, with a name and a right
    principal(request).may(right)  whether a form for an act is to be shown
    await order(request)           who asks for an act and why; raises where the reason is missing
    form_token(request)            for each form of a page: the value of its hidden field
                                   `form_token`, or of the field X-Form-Token of a script

Who asks is found in this order:

1. With neither tokens nor single sign-on in the rules, everybody may read. Commands on the same
   machine may operate: requests from a loopback address that no browser has sent (browsers send
   Origin with whatever is not a GET, and Sec-Fetch-Site) and no proxy has passed on.
2. A trusted proxy names the user of a single sign-on, with groups.
3. `Authorization: Bearer` has a token of the rules (RFC 6750).
4. A cookie has a session, which a browser gets for a token at /login.

The cookie and the proxy's fields come with whatever a browser sends, also when the page of a
stranger had it sent. So an act needs the form token as well, which no such page can read.
"""

import re
import secrets
import time
from collections.abc import Callable
from enum import StrEnum
from hmac import compare_digest
from typing import NamedTuple, NoReturn, TypeVar

from aiohttp import web

from gateway.access.admin_rules import AdminRules, AdminToken, Right, SignOn
from gateway.admin.access.admin_guard import NOWHERE, AdminProblemError
from gateway.admin.access.failed_tries import OTHERS, FailedTries
from gateway.admin.access.session_cookie import SESSION, new_session, session_holder
from gateway.base.addresses import parse_address, trusts
from gateway.base.client_names import UNVERIFIED
from gateway.observe import log
from gateway.rollout.decisions import ChangeRequest

FORM_COOKIE = "gateway_form"
# As `form_token` makes them; a cookie may hold any bytes.
_FORM_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")
FORM_FIELD = "form_token"
FORM_HEADER = "X-Form-Token"
# The most characters of a name and of a reason in the audit log.
_LONGEST = 200
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Fields of a request that a browser has sent, or that a proxy has passed on.
_NOT_LOCAL = ("Origin", "Sec-Fetch-Site", "Forwarded", "X-Forwarded-For", "Via")

_Handler = TypeVar("_Handler", bound=Callable[..., object])


class KnownBy(StrEnum):
    """How it is known who asks."""

    NOTHING = "nothing"
    COMMAND = "command"
    SIGN_ON = "sign_on"
    TOKEN = "token"  # noqa: S105  # the word, not one
    SESSION = "session"


class Principal(NamedTuple):
    """Who asks.

    Attributes:
        name: of the holder of the token or of the user; what a command claims, marked as such;
            empty if nothing gives a name.
        right: what they may do; None for nothing.
        by: how it is known.
    """

    name: str
    right: Right | None
    by: KnownBy

    def may(self, right: Right) -> bool:
        """Return whether this principal may do that."""
        return self.right is not None and self.right.includes(right)


_PRINCIPAL: web.RequestKey[Principal] = web.RequestKey("principal", Principal)
_NEW_FORM: web.RequestKey[str] = web.RequestKey("new_form", str)


def needs(right: Right | None) -> Callable[[_Handler], _Handler]:
    """Return a decorator: requests to this handler need that right, or none, whatever the method.

    Such a POST changes nothing, so that it needs no form token.
    """

    def mark(handler: _Handler) -> _Handler:
        handler.right = right  # type: ignore[attr-defined]  # functions take attributes
        return handler

    return mark


def public(request: web.Request) -> bool:
    """Return whether anybody may ask this."""
    handler = request.match_info.handler
    return NOWHERE in request.match_info or getattr(handler, "right", Right.READ) is None


def principal(request: web.Request) -> Principal:
    """Return who asks."""
    return request[_PRINCIPAL]


def known_principal(request: web.Request) -> Principal | None:
    """Return who asks; None for a request that was answered before that was found."""
    return request.get(_PRINCIPAL)


async def order(request: web.Request) -> ChangeRequest:
    """Return who asks for an act, from where, and why: `?why=` or the field `why` of a form.

    Commands of a machine whose gateway has no rules of rights may leave the reason out.

    Raises:
        AdminProblemError: there is no reason.
    """
    why = _printable(request.query.get("why") or await _field(request, "why"))
    if not why and principal(request).by is not KnownBy.COMMAND:
        raise AdminProblemError(
            *(400, "reason_missing"),
            "an act needs a reason, for the audit log; write --why TEXT, or ?why=TEXT in a request",
        )
    return ChangeRequest(principal(request).name or "(unnamed)", request.remote or "", why)


def form_token(request: web.Request) -> str:
    """Return what forms on the page of this request have to send, and have the browser keep it."""
    found = request.cookies.get(FORM_COOKIE) or request.get(_NEW_FORM)
    if not found or not _FORM_TOKEN.fullmatch(found):
        found = request[_NEW_FORM] = secrets.token_urlsafe(16)
    return found


async def check_form(request: web.Request) -> None:
    """Raise AdminProblemError unless a form of a page of this port has been sent."""
    kept = request.cookies.get(FORM_COOKIE, "")
    sent = request.headers.get(FORM_HEADER) or await _field(request, FORM_FIELD)
    same = compare_digest(*(text.encode(errors="surrogateescape") for text in (kept, sent)))
    if not kept or not same:
        detail = "the form is not of a page of this port, or too old; load the page again"
        raise AdminProblemError(403, "form_unknown", detail)


def keep_form(request: web.Request, response: web.StreamResponse) -> None:
    """Have the browser keep a new form token, if the page of this response has one."""
    if _NEW_FORM in request and not response.prepared:
        set_cookie(request, response, FORM_COOKIE, request[_NEW_FORM])


def set_cookie(
    request: web.Request, response: web.StreamResponse, name: str, value: str, seconds: int = 0
) -> None:
    """Have the browser keep a cookie for this port's own pages; 0 seconds: until it is closed."""
    response.set_cookie(
        name,
        value,
        max_age=seconds or None,
        httponly=True,
        samesite="Strict",
        secure=request.secure,
    )


class Rights:
    """Finds who asks, and refuses what they may not do.

    Args:
        rules: returns who may ask, by the rules in force.
    """

    def __init__(self, rules: Callable[[], AdminRules]) -> None:
        self._rules = rules
        self._tries = FailedTries()

    def check(self, request: web.Request) -> bool:
        """Find who asks, for `principal`; return whether a form of this port has to be sent.

        Raises:
            AdminProblemError: they may not do this.
        """
        handler = request.match_info.handler
        reads = request.method in _READING
        right = getattr(handler, "right", Right.READ if reads else Right.OPERATE)
        if public(request):
            return False
        found = request[_PRINCIPAL] = self._find(request)
        if not found.may(right):
            _forbid(found, right)
        changes = not (reads or hasattr(handler, "right"))
        return changes and found.by in (KnownBy.SIGN_ON, KnownBy.SESSION)

    def session(self, request: web.Request, text: str) -> str:
        """Return the cookie of a new session for the token with this text.

        Raises:
            AdminProblemError: there is no such token, or there were too many failed tries.
        """
        rules = self._rules()
        if not rules.tokens:
            instead = "read without one" if rules.open else "come by the single sign-on"
            _challenge(f"the rules name no tokens in 'admin', so that none is right; {instead}")
        return new_session(self._holder(request, rules, text), time.time())

    def _find(self, request: web.Request) -> Principal:
        rules = self._rules()
        if rules.open:
            return _unproven(request)
        if rules.sign_on is not None:
            user = _user(request, rules.sign_on)
            if user is not None:
                return user
        given = request.headers.get("Authorization")
        if given is not None:
            return self._bearer(request, rules, given)
        token = session_holder(request.cookies.get(SESSION, ""), rules.tokens, time.time())
        if token is None:
            _challenge(
                "send a token of 'admin' in the rules: Authorization: Bearer TOKEN; commands take"
                " it from GATEWAY_ADMIN_TOKEN"
            )
        return Principal(token.name, token.right, KnownBy.SESSION)

    def _bearer(self, request: web.Request, rules: AdminRules, given: str) -> Principal:
        scheme, _, text = given.partition(" ")
        token = self._holder(request, rules, text.strip() if scheme.lower() == "bearer" else "")
        return Principal(token.name, token.right, KnownBy.TOKEN)

    def _holder(self, request: web.Request, rules: AdminRules, text: str) -> AdminToken:
        token = rules.holder(text)
        if token is None:
            peer = request.remote or ""
            tried = self._tries.add(peer, time.monotonic())
            if tried.starts:
                log.event("admin_tries_limited", "warning", peer=tried.of)
            if tried.wait:
                detail = (
                    f"the token is none of 'admin' in the rules, and too many wrong ones came from"
                    f" {'this address' if tried.of != OTHERS else OTHERS}; correct it, and wait"
                    f" {tried.wait} seconds"
                )
                fields = {"Retry-After": str(tried.wait)}
                raise AdminProblemError(429, "too_many_tries", detail, fields)
            more = {"unlogged": tried.unlogged} if tried.unlogged else {}
            log.event("admin_token_wrong", "warning", peer=peer, path=request.path, **more)
            # RFC 6750, section 3.1.
            _challenge("the token is none of 'admin' in the rules", ', error="invalid_token"')
        return token


def _unproven(request: web.Request) -> Principal:
    address = parse_address(request.remote or "")
    if address is None or not address.is_loopback or any(map(request.headers.get, _NOT_LOCAL)):
        return Principal("", Right.READ, KnownBy.NOTHING)
    claimed = _printable(request.headers.get("X-Operator", ""))
    name = f"{UNVERIFIED}{claimed}" if claimed else ""
    return Principal(name, Right.OPERATE, KnownBy.COMMAND)


def _user(request: web.Request, sign_on: SignOn) -> Principal | None:
    users = request.headers.getall(sign_on.user, [])
    # One name and no more: a second one would be the client's own.
    if len(users) != 1 or not trusts(sign_on.proxies, request.remote or ""):
        return None
    name = _printable(users[0])
    groups = ",".join(request.headers.getall(sign_on.groups, []))
    return Principal(name, sign_on.right(groups), KnownBy.SIGN_ON) if name else None


def _forbid(found: Principal, right: Right) -> NoReturn:
    who = f"{found.name} has" if found.name else "without a token, you have"
    what = "not even the right to read" if found.right is None else f"no right to {right}"
    groups = {Right.READ: "readers", Right.OPERATE: "operators"}
    hints = {
        KnownBy.NOTHING: "; name one in 'admin' in the rules, or use the commands on the machine of"
        " the gateway",
        KnownBy.SIGN_ON: f"; only groups of 'admin.sign_on.{groups[right]}' in the rules have it",
    }
    hint = hints.get(found.by, f"; ask by a token with the right to {right}")
    raise AdminProblemError(403, "forbidden", f"{who} {what}{hint}")


def _challenge(detail: str, error: str = "") -> NoReturn:
    challenge = {"WWW-Authenticate": f'Bearer realm="version-gateway admin"{error}'}
    raise AdminProblemError(401, "unauthorized", detail, challenge)


async def _field(request: web.Request, name: str) -> str:
    if request.content_type != "application/x-www-form-urlencoded":
        return ""
    found = (await request.post()).get(name, "")
    return found if isinstance(found, str) else ""


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())[:_LONGEST].strip()
