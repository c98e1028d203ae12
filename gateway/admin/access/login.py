"""Login: a browser gets a session for a token, and gives it up again."""

from collections.abc import Callable
from html import escape

from aiohttp import web

from gateway.admin.access.admin_guard import AdminProblemError
from gateway.admin.access.rights import (
    FORM_FIELD,
    Rights,
    check_form,
    form_token,
    needs,
    set_cookie,
)
from gateway.admin.access.session_cookie import SECONDS, SESSION
from gateway.findings.formatting import sentence

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)


class Login:
    """The handlers of /login and /logout.

    Args:
        rights: checks tokens.
        count: takes the code of each refusal.
    """

    def __init__(self, rights: Rights, count: Callable[[str], None]) -> None:
        self._rights = rights
        self._count = count

    @needs(None)
    async def show(self, request: web.Request) -> web.Response:
        """Answer the form; `?next=` is the path that follows it."""
        return login_page(request, request.query.get("next", "/"))

    @needs(None)
    async def enter(self, request: web.Request) -> web.Response:
        """Begin a session for the token in the form."""
        form = await request.post()
        after = str(form.get("next", "/"))
        try:
            await check_form(request)
            session = self._rights.session(request, str(form.get("token", "")).strip())
        except AdminProblemError as error:
            self._count(error.code)
            return login_page(request, after, error)
        response = _see_other(after)
        set_cookie(request, response, SESSION, session, SECONDS)
        return response

    @needs(None)
    async def leave(self, request: web.Request) -> web.Response:
        """End the session of this browser."""
        await check_form(request)
        response = _see_other("/login")
        response.del_cookie(SESSION, httponly=True, samesite="Strict", secure=request.secure)
        return response


def login_page(
    request: web.Request, after: str, problem: AdminProblemError | None = None
) -> web.Response:
    """Return the page with the form for a token.

    Args:
        request: what is answered.
        after: the path that follows the login.
        problem: why the last request was refused.
    """
    status, said, more = 200, "", dict[str, str]()
    if problem is not None:
        status, said, more = problem.status, str(problem), dict(problem.fields)
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in – Version gateway</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/page/static/icon.svg"><link rel="stylesheet" href="/page/static/page.css">
</head><body class="login"><main>
<h1>Version gateway</h1>
{f'<p role="alert" class="error">{escape(sentence(said))}</p>' if said else ""}
<form method="post" action="/login">
<input type="hidden" name="{FORM_FIELD}" value="{escape(form_token(request))}">
<input type="hidden" name="next" value="{escape(after)}">
<label>Token <input type="password" name="token" autocomplete="current-password" required
autofocus></label> <button class="main">Log in</button>
</form></main></body></html>
"""
    fields = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store", **more}
    return web.Response(text=text, content_type="text/html", status=status, headers=fields)


def _see_other(path: str) -> web.Response:
    # A path of this port alone: neither //host nor /\\host, which browsers read as a host.
    own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return web.Response(status=303, headers={"Location": path if own else "/"})
