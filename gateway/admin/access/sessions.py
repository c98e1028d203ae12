"""Browser sessions: the login page, the session cookie and the form token."""

import re
import secrets
import time
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac
from html import escape
from importlib import resources
from string import Template

from aiohttp import web

from gateway.access.admin import TokenHolder
from gateway.admin.access.rights import AccessDeniedError, AdminProblemError, form_field, needs
from gateway.findings.formatting import sentence

SESSION = "gateway_session"
SECONDS = 12 * 3600
FORM_COOKIE = "gateway_form"
_FORM_FIELD = "form_token"
_FORM_HEADER = "X-Form-Token"  # sent by scripts
_FORM_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")
_NEW_FORM: web.RequestKey[str] = web.RequestKey("new_form", str)
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)


def new_session(token: TokenHolder, now: float) -> str:
    """Return a session cookie: holder's name, expiry in seconds since 1970, signature.

    The signing key is the digest of the token. Every replica can therefore verify the session
    without a store, and removing the token ends the session. The expiry is wall-clock time because
    a session outlives a restart.
    """
    subject = f"{token.name}.{int(now) + SECONDS}"
    return f"{subject}.{_signature(subject, token)}"


def session_holder(cookie: str, tokens: Iterable[TokenHolder], now: float) -> TokenHolder | None:
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
    if not found or not _FORM_TOKEN.fullmatch(found):  # a client can send any cookie
        found = request[_NEW_FORM] = secrets.token_urlsafe(16)
    return found


async def check_form(request: web.Request) -> None:
    """Raise AccessDeniedError unless the form token equals the one in the form cookie."""
    expected = request.cookies.get(FORM_COOKIE, "")
    sent = request.headers.get(_FORM_HEADER) or await form_field(request, _FORM_FIELD)
    same = compare_digest(*(text.encode(errors="surrogateescape") for text in (expected, sent)))
    if not expected or not same:
        detail = "the form token is missing or too old; load the page again"
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


@cache
def _login_template() -> Template:
    return Template((resources.files("gateway.admin.page") / "templates/login.html").read_text())


def login_page(
    request: web.Request, path: str, denied: AdminProblemError | None = None
) -> web.Response:
    status, fields, reason = 200, dict[str, str](), ""
    if denied is not None:
        status, fields = denied.status, dict(denied.fields)
        if request.method != "GET" or "Authorization" in request.headers:
            reason = f'<p role="alert" class="error">{escape(sentence(str(denied)))}</p>'
    text = _login_template().substitute(
        reason=reason, form_token=escape(form_token(request)), next=escape(path)
    )
    fields = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store", **fields}
    return web.Response(text=text, content_type="text/html", status=status, headers=fields)


def _see_other(path: str) -> web.Response:
    # Redirect only to paths of this port. Browsers read //host and /\\host as another host.
    own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return web.Response(status=303, headers={"Location": path if own else "/"})
