"""Authentication: identifies the sender of a request, and bounds attempts with wrong tokens.

In this order:

1. Without tokens and sign-on in the configuration, everybody may read, and commands on the same
   machine may operate: requests from a loopback address without the fields of a browser or a proxy.
2. A trusted proxy names the user of the single sign-on, and groups.
3. `Authorization: Bearer` has a token of the configuration (RFC 6750).
4. A cookie has a session.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac
from html import escape
from ipaddress import IPv6Address, ip_network
from math import ceil

from aiohttp import web

from gateway.access.admin import AdminAccess, Right, TokenHolder, TrustedSignOn
from gateway.admin.access.rights import (
    AccessDeniedError,
    AdminProblemError,
    KnownBy,
    Principal,
    form_field,
    needs,
    printable,
)
from gateway.base.addresses import parse_address, trusts
from gateway.base.client_names import UNVERIFIED
from gateway.findings.formatting import sentence
from gateway.observe import log

# Fields that a browser sends (Origin with methods other than GET), or a proxy.
_NOT_LOCAL = ("Origin", "Sec-Fetch-Site", "Forwarded", "X-Forwarded-For", "Via")
# Attempts of one address at once, and the time until they are available again. Tokens have at least
# 16 characters, so the bound is on work and log lines.
_ATTEMPTS = 20
_SECONDS = 60.0
_MOST_ADDRESSES = 1024
_OTHERS = "other addresses"


class Authentication:
    """Identifies the senders of requests.

    Args:
        clock: returns monotonic seconds.
    """

    def __init__(
        self, rules: Callable[[], AdminAccess], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rules = rules
        self._clock = clock
        self._attempts: dict[str, _Attempts] = {}

    def identify(self, request: web.Request) -> Principal:
        """Return the sender of a request; raise AccessDeniedError if nothing identifies them."""
        rules = self._rules()
        if rules.open:
            return _unproven(request)
        user = None if rules.sign_on is None else _signed_on_user(request, rules.sign_on)
        if user is not None:
            return user
        given = request.headers.get("Authorization")
        if given is not None:
            scheme, _, text = given.partition(" ")
            token = self._holder(request, rules, text.strip() if scheme.lower() == "bearer" else "")
            return Principal(token.name, token.right, KnownBy.TOKEN)
        holder = session_holder(request.cookies.get(SESSION, ""), rules.tokens, time.time())
        if holder is None:
            raise _challenge(
                "send a token of 'admin' in the rules: Authorization: Bearer TOKEN; commands take"
                " it from GATEWAY_ADMIN_TOKEN"
            )
        return Principal(holder.name, holder.right, KnownBy.SESSION)

    def log_in(self, request: web.Request, text: str) -> TokenHolder:
        """Return the token with a text; raise AccessDeniedError if there is none."""
        rules = self._rules()
        if not rules.tokens:
            instead = "read without one" if rules.open else "come by the single sign-on"
            raise _challenge(
                f"the rules name no tokens in 'admin', so that none is right; {instead}"
            )
        return self._holder(request, rules, text)

    def _holder(self, request: web.Request, rules: AdminAccess, text: str) -> TokenHolder:
        token = rules.holder(text)
        if token is not None:
            return token
        peer = request.remote or ""
        attempts, now = self._attempts_of(_network(peer)), self._clock()
        wait = attempts.wait(now)
        if wait:
            if attempts.refused is None:
                log.event("admin_tries_limited", "warning", peer=attempts.address)
            attempts.refused = (attempts.refused or 0) + 1
            origin = _OTHERS if attempts.address == _OTHERS else "this address"
            detail = (
                f"the token is none of 'admin' in the rules, and too many wrong ones came from"
                f" {origin}; correct it, and wait {wait} seconds"
            )
            fields = {"Retry-After": str(wait)}
            raise AccessDeniedError(429, "too_many_tries", detail, fields)
        more = {"unlogged": attempts.refused} if attempts.refused else {}
        attempts.refused = None if attempts.refused is None else 0
        log.event("admin_token_wrong", "warning", peer=peer, path=request.path, **more)
        # RFC 6750, section 3.1.
        raise _challenge("the token is none of 'admin' in the rules", ', error="invalid_token"')

    def _attempts_of(self, address: str) -> "_Attempts":
        now = self._clock()
        if address not in self._attempts and len(self._attempts) >= _MOST_ADDRESSES:
            rows = self._attempts.items()
            self._attempts = {name: row for name, row in rows if row.all_available > now}
            if len(self._attempts.keys() - {_OTHERS}) >= _MOST_ADDRESSES:
                address = _OTHERS
        row = self._attempts.get(address)
        if row is None or row.all_available <= now:
            row = self._attempts[address] = _Attempts(address, now)
        return row


class _Attempts:
    """The attempts of an address with wrong tokens (GCRA).

    Attributes:
        refused: how many were refused since the last one that was not; None if none was so far.
    """

    def __init__(self, address: str, now: float) -> None:
        self.address = address
        self.all_available = now
        self.refused: int | None = None

    def wait(self, now: float) -> int:
        """Take an attempt, and return 0; or return the seconds until one is available."""
        interval = _SECONDS / _ATTEMPTS
        over = self.all_available - now - _SECONDS + interval
        if over > 1e-9:
            return ceil(over)
        self.all_available += interval
        return 0


def _network(address: str) -> str:
    parsed = parse_address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    return str(ip_network((parsed, 64), strict=False))  # usually all of one host


def _unproven(request: web.Request) -> Principal:
    address = parse_address(request.remote or "")
    if address is None or not address.is_loopback or any(map(request.headers.get, _NOT_LOCAL)):
        return Principal("", Right.READ, KnownBy.NOTHING)
    claimed = printable(request.headers.get("X-Operator", ""))
    return Principal(f"{UNVERIFIED}{claimed}" if claimed else "", Right.OPERATE, KnownBy.COMMAND)


def _signed_on_user(request: web.Request, sign_on: TrustedSignOn) -> Principal | None:
    users = request.headers.getall(sign_on.user, [])
    # A second name would be the client's own.
    if len(users) != 1 or not trusts(sign_on.proxies, request.remote or ""):
        return None
    name = printable(users[0])
    groups = ",".join(request.headers.getall(sign_on.groups, []))
    return Principal(name, sign_on.right(groups), KnownBy.SIGN_ON) if name else None


def _challenge(detail: str, error: str = "") -> AccessDeniedError:
    challenge = {"WWW-Authenticate": f'Bearer realm="version-gateway admin"{error}'}
    return AccessDeniedError(401, "unauthorized", detail, challenge)


SESSION = "gateway_session"
SECONDS = 12 * 3600
FORM_COOKIE = "gateway_form"
_FORM_FIELD = "form_token"
_FORM_HEADER = "X-Form-Token"  # of scripts
_FORM_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")
_NEW_FORM: web.RequestKey[str] = web.RequestKey("new_form", str)
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)


def new_session(token: TokenHolder, now: float) -> str:
    """Return a session cookie: name of the holder, end in seconds since 1970, signature.

    Its key is the digest of the token, so every replica accepts it without a store, and it ends
    with the token. The end is wall-clock time, as a session outlives a restart.
    """
    subject = f"{token.name}.{int(now) + SECONDS}"
    return f"{subject}.{_signature(subject, token)}"


def session_holder(cookie: str, tokens: Iterable[TokenHolder], now: float) -> TokenHolder | None:
    """Return the token whose session a cookie has; None if it is forged or has ended."""
    subject, _, signature = cookie.rpartition(".")
    name, _, end = subject.rpartition(".")
    given = signature.encode(errors="surrogateescape")
    for token in tokens:
        if token.name == name and compare_digest(_signature(subject, token).encode(), given):
            return token if now < int(end) else None
    return None


def _signature(subject: str, token: TokenHolder) -> str:
    return hmac(token.digest, b"session " + subject.encode(), sha256).hexdigest()


def form_token(request: web.Request) -> str:
    found = request.cookies.get(FORM_COOKIE) or request.get(_NEW_FORM)
    if not found or not _FORM_TOKEN.fullmatch(found):  # a cookie may hold any bytes
        found = request[_NEW_FORM] = secrets.token_urlsafe(16)
    return found


async def check_form(request: web.Request) -> None:
    """Raise AccessDeniedError unless a request has the form token of its cookie."""
    expected = request.cookies.get(FORM_COOKIE, "")
    sent = request.headers.get(_FORM_HEADER) or await form_field(request, _FORM_FIELD)
    same = compare_digest(*(text.encode(errors="surrogateescape") for text in (expected, sent)))
    if not expected or not same:
        detail = "the form is not of a page of this port, or too old; load the page again"
        raise AccessDeniedError(403, "form_unknown", detail)


def set_form_cookie(request: web.Request, response: web.StreamResponse) -> None:
    if _NEW_FORM in request and not response.prepared:
        _set_cookie(request, response, FORM_COOKIE, request[_NEW_FORM], None)


def _set_cookie(
    request: web.Request, response: web.StreamResponse, name: str, value: str, seconds: int | None
) -> None:
    security = {"httponly": True, "samesite": "Strict", "secure": request.secure}
    response.set_cookie(name, value, max_age=seconds, **security)  # type: ignore[arg-type]


def login_routes(
    log_in: Callable[[web.Request, str], TokenHolder], count: Callable[[str], None]
) -> list[web.RouteDef]:
    @needs(None)
    async def show(request: web.Request) -> web.Response:
        return login_page(request, request.query.get("next", "/"))

    @needs(None)
    async def enter(request: web.Request) -> web.Response:
        form = await request.post()
        path = str(form.get("next", "/"))
        try:
            await check_form(request)
            token = log_in(request, str(form.get("token", "")).strip())
        except AccessDeniedError as error:
            count(error.code)
            return login_page(request, path, error)
        response = _see_other(path)
        _set_cookie(request, response, SESSION, new_session(token, time.time()), SECONDS)
        return response

    @needs(None)
    async def leave(request: web.Request) -> web.Response:
        await check_form(request)
        response = _see_other("/login")
        response.del_cookie(SESSION, httponly=True, samesite="Strict", secure=request.secure)
        return response

    return [web.get("/login", show), web.post("/login", enter), web.post("/logout", leave)]


def login_page(
    request: web.Request, path: str, denied: AdminProblemError | None = None
) -> web.Response:
    status, fields, reason = 200, dict[str, str](), ""
    if denied is not None:
        status, fields = denied.status, dict(denied.fields)
        reason = f'<p role="alert" class="error">{escape(sentence(str(denied)))}</p>'
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in – Version gateway</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/page/static/icon.svg"><link rel="stylesheet" href="/page/static/page.css">
</head><body class="login"><main>
<h1>Version gateway</h1>
{reason}
<form method="post" action="/login">
<input type="hidden" name="{_FORM_FIELD}" value="{escape(form_token(request))}">
<input type="hidden" name="next" value="{escape(path)}">
<label>Token <input type="password" name="token" autocomplete="current-password" required
autofocus></label> <button class="main">Log in</button>
</form></main></body></html>
"""
    fields = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store", **fields}
    return web.Response(text=text, content_type="text/html", status=status, headers=fields)


def _see_other(path: str) -> web.Response:
    # A path of this port alone: neither //host nor /\\host, which browsers read as a host.
    own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return web.Response(status=303, headers={"Location": path if own else "/"})
