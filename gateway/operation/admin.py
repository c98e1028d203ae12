"""The admin port: health, usage and orders, apart from the paths of the users' APIs.

Every refusal is a problem detail (RFC 9457), as on the other port.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NoReturn

import msgspec
from aiohttp import web

from gateway.config.report import suggest
from gateway.core.orders import Served
from gateway.operation import control
from gateway.operation.desk import Desk, versions_of
from gateway.operation.usage import rows

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


def admin_app(desk: Desk) -> web.Application:
    """Return the admin application."""
    admin = _Admin(desk)
    app = web.Application(middlewares=[_problems])
    app.add_routes(
        [
            web.get("/healthz", admin.healthz),
            web.get("/readyz", admin.readyz),
            web.get("/usage", admin.usage),
            web.get("/orders", admin.orders),
            web.get("/brownouts/{api}/{version}", admin.brownout),
            web.put("/brownouts/{api}/{version}", admin.pause_brownout),
            web.delete("/brownouts/{api}/{version}", admin.resume_brownout),
            web.get("/cutovers/{api}/{version}", admin.cutover),
            web.put("/cutovers/{api}/{version}", admin.set_cutover),
            web.delete("/cutovers/{api}/{version}", admin.clear_cutover),
            web.get("/shadows/{api}/{version}", admin.shadow),
        ]
    )
    return app


class _Admin:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def healthz(self, _: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def readyz(self, _: web.Request) -> web.Response:
        reason = self._desk.unready()
        if reason is None:
            return _json({"status": "ready"})
        return _json({"status": "not ready", "reason": reason}, 503)

    async def usage(self, request: web.Request) -> web.Response:
        api, version = request.query.get("api"), request.query.get("version")
        ledger = self._desk.ledger
        return _json({"since": ledger.since, "usage": rows(ledger, api, version)})

    async def orders(self, _: web.Request) -> web.Response:
        return _json(control.as_json(self._desk.control.orders))

    async def brownout(self, request: web.Request) -> web.Response:
        return self._brownout(self._served(request))

    async def pause_brownout(self, request: web.Request) -> web.Response:
        served = self._served(request)
        await self._desk.control.pause(served)
        return self._brownout(served)

    async def resume_brownout(self, request: web.Request) -> web.Response:
        served = self._served(request)
        await self._desk.control.resume(served)
        return self._brownout(served)

    def _brownout(self, served: Served) -> web.Response:
        api, version = served
        paused = served in self._desk.control.orders.paused
        return _json({"api": api, "version": version, "paused": paused})

    async def cutover(self, request: web.Request) -> web.Response:
        return self._cutover(self._served(request))

    async def set_cutover(self, request: web.Request) -> web.Response:
        served = self._served(request)
        try:
            wanted = msgspec.json.decode(await request.read(), type=_Percent, strict=True)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            _refuse(400, "bad_request", f"{error}; send {{'percent': 25}}, from 0 to 100.")
        if not 0 <= wanted.percent <= 100:
            _refuse(400, "bad_request", "'percent' goes from 0 to 100.")
        await self._desk.control.shift(served, wanted.percent, "told by an operator")
        return self._cutover(served)

    async def clear_cutover(self, request: web.Request) -> web.Response:
        served = self._served(request)
        await self._desk.control.shift(served, None, "told by an operator")
        return self._cutover(served)

    def _cutover(self, served: Served) -> web.Response:
        api, version = served
        percent = self._desk.control.orders.percents.get(served)
        return _json({"api": api, "version": version, "percent": percent})

    async def shadow(self, request: web.Request) -> web.Response:
        api, version = served = self._served(request)
        ledger = self._desk.ledger
        differences = {
            labels[-1]: {"count": times.count, "first": times.first, "last": times.last}
            for labels, times in ledger.counted("differences", *served)
        }
        compared = sum(times.count for _, times in ledger.counted("compared", *served))
        samples = list(ledger.samples.get(("differences", *served), ()))
        answer = {"api": api, "version": version, "compared": compared}
        return _json({**answer, "differences": differences, "samples": samples})

    def _served(self, request: web.Request) -> Served:
        api, version = request.match_info["api"], request.match_info["version"]
        known = versions_of(self._desk.rules())
        if api not in known:
            _refuse(404, "not_found", f"No API is called '{api}'; {suggest(api, known)}.")
        if version not in known[api]:
            told = suggest(version, known[api])
            _refuse(404, "not_found", f"No version of {api} is called '{version}'; {told}.")
        return api, version


class _Percent(msgspec.Struct, forbid_unknown_fields=True):
    percent: float


class _Refused(Exception):
    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


def _refuse(status: int, code: str, detail: str) -> NoReturn:
    raise _Refused(status, code, detail)


@web.middleware
async def _problems(request: web.Request, handler: Handle) -> web.StreamResponse:
    try:
        return await handler(request)
    except _Refused as error:
        return _problem(request, error.status, error.code, str(error))
    except TimeoutError:
        detail = "A worker has not said that it obeys; it will when it comes to it."
        return _problem(request, 504, "worker_timeout", detail)
    except web.HTTPMethodNotAllowed as error:
        allow = ", ".join(sorted(error.allowed_methods))
        answer = _problem(request, 405, "method_not_allowed", f"This path answers {allow}.")
        answer.headers["Allow"] = allow
        return answer
    except web.HTTPException as error:
        code = HTTPStatus(error.status).phrase.lower().replace(" ", "_")
        return _problem(request, error.status, code, f"{error.reason}.")


def _problem(request: web.Request, status: int, code: str, detail: str) -> web.Response:
    problem = {
        "type": f"urn:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.path,
        "code": code,
    }
    return _json(problem, status, "application/problem+json")


def _json(document: object, status: int = 200, kind: str = "application/json") -> web.Response:
    return web.Response(body=msgspec.json.encode(document), status=status, content_type=kind)
