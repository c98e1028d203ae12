"""The addresses of the operator's page; its parts are imported with the first request for one."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from aiohttp import web

from gateway.access.admin import Right
from gateway.admin.access.rights import needs
from gateway.findings.operator import Operator

if TYPE_CHECKING:
    from gateway.admin.page.page_app import Page

# Exceptions to the right by method: the login page loads the same style sheet, and checking a
# draft changes nothing.
_NEEDS = {"static": None, "check_draft": Right.READ}
# The method of Page for each method and path.
_ROUTES = {
    ("GET", "/"): "next",
    ("GET", "/page/versions"): "versions",
    ("GET", "/page/versions/{api}"): "version",
    ("GET", "/page/versions/{api}/{version}"): "version",
    ("POST", "/page/versions/{api}/{version}/{part:cutover|brownouts|shadow}"): "act",
    ("POST", "/page/replicas/{replica}"): "forget",
    ("GET", "/page/callers/{api}"): "callers",
    ("GET", "/page/callers/{api}/{version}"): "callers",
    ("GET", "/page/rules"): "rules",
    ("POST", "/page/rules"): "check_draft",
    ("GET", "/page/audit"): "audit",
    ("GET", "/page/events"): "events",
    ("GET", "/page/static/{name}"): "static",
}


def _for_people(request: web.Request, status: int) -> bool:
    """Whether an answer is for people: of the page, or that nothing is where a browser looks."""
    if request.path == "/" or request.path.startswith("/page/"):
        return True
    return status == 404 and "text/html" in request.headers.get("Accept", "")


class PageRoutes:
    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._page: Page | None = None

    def routes(self) -> Iterator[web.RouteDef]:
        for (method, path), name in _ROUTES.items():
            yield web.route(method, path, self._handler(name))

    async def show(self, request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
        """Return an answer as people read it: a problem detail becomes a page."""
        is_problem = answer.content_type == "application/problem+json"
        if not (is_problem and _for_people(request, answer.status)):
            return answer
        assert isinstance(answer, web.Response)
        detail = json.loads(answer.text or "{}").get("detail", "")
        shown = await (await self._made()).problem(request, answer.status, detail)
        for name in ("Allow", "Retry-After", "WWW-Authenticate"):
            if name in answer.headers:
                shown.headers[name] = answer.headers[name]
        return shown

    def _handler(self, name: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            found: web.StreamResponse = await getattr(await self._made(), name)(request)
            return found

        return needs(_NEEDS[name])(answer) if name in _NEEDS else answer

    async def _made(self) -> "Page":
        if self._page is None:
            # Without a view, the gateway saves this memory; the import runs in a thread, so that
            # requests are served meanwhile.
            made = (await asyncio.to_thread(_imported))(self._operator)
            self._page = self._page or made
        return self._page

    async def close(self, _: web.Application) -> None:
        if self._page is not None:
            self._page.close()


def _imported() -> "type[Page]":
    from gateway.admin.page.page_app import Page

    return Page
