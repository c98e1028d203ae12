"""The routes of the admin port, of which each refuses an Expect that it cannot meet."""

from collections.abc import Iterable, Sequence

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.web_urldispatcher import (
    AbstractResource,
    MatchedSubAppResource,
    PlainResource,
    UrlMappingMatchInfo,
)

from gateway.admin.access.admin_answers import problem
from gateway.admin.access.admin_guard import NOWHERE


def add_routes(app: web.Application, routes: Iterable[web.RouteDef]) -> None:
    """Add routes, and one for all other paths."""
    meeting = {"expect_handler": meet_expectation}
    app.add_routes(
        web.RouteDef(each.method, each.path, each.handler, {**each.kwargs, **meeting})
        for each in routes
    )
    elsewhere = _Elsewhere([*app.router.resources()])
    app.router.register_resource(elsewhere)
    app.router.register_resource(_Pathless(elsewhere))


class _Elsewhere(PlainResource):
    """All targets that no other resource has, also those that are no paths: `OPTIONS *`."""

    def __init__(self, others: Sequence[AbstractResource]) -> None:
        super().__init__("/")
        self._others = others
        self._route = self.add_route("*", self._refuse, expect_handler=meet_expectation)

    async def resolve(self, request: web.Request) -> tuple[UrlMappingMatchInfo, set[str]]:
        return UrlMappingMatchInfo({NOWHERE: request.path}, self._route), set()

    async def _refuse(self, request: web.Request) -> web.StreamResponse:
        allowed = {method for each in self._others for method in (await each.resolve(request))[1]}
        if allowed:
            raise web.HTTPMethodNotAllowed(request.method, allowed)
        raise web.HTTPNotFound


class _Pathless(MatchedSubAppResource):
    """The targets without a path, that of CONNECT: aiohttp looks no other resource up for them."""

    def __init__(self, elsewhere: _Elsewhere) -> None:
        AbstractResource.__init__(self)  # it has no application and no rule of its own
        self._elsewhere = elsewhere

    @property
    def canonical(self) -> str:
        return self._elsewhere.canonical

    async def resolve(self, request: web.Request) -> tuple[UrlMappingMatchInfo | None, set[str]]:
        if request.rel_url.path_safe:
            return None, set()
        return await self._elsewhere.resolve(request)


async def meet_expectation(request: web.Request) -> web.Response | None:
    """Have the client send its body, or return a refusal (RFC 9110, section 10.1.1).

    aiohttp would quote the expectation in its refusal, which fails for one that is no text, and is
    no problem detail.
    """
    if request.version != HttpVersion11:
        return None
    if any(each.lower() != "100-continue" for each in request.headers.getall(hdrs.EXPECT)):
        return problem(request, 417, "expectation_failed", "Only 100-continue can be expected.")
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0
    return None
