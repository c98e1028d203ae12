"""The admin port: health, usage and orders, apart from the paths of the users' APIs.

Every refusal is a problem detail (RFC 9457), as on the other port.
"""

import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NoReturn

import msgspec
from aiohttp import web

from gateway.config.report import suggest
from gateway.core.orders import Served
from gateway.operation import control
from gateway.operation.desk import Desk, check_known, legs_of, versions_of
from gateway.operation.retire import WITHIN, verdict
from gateway.operation.shadow import shadow
from gateway.operation.usage import usage

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


def admin_app(desk: Desk) -> web.Application:
    """Return the admin application."""
    admin = _Admin(desk)
    app = web.Application(middlewares=[_problems])
    app.add_routes(
        [
            web.get("/healthz", admin.healthz),
            web.get("/readyz", admin.readyz),
            web.get("/metrics", admin.metrics),
            web.get("/usage", admin.usage),
            web.get("/versions", admin.versions),
            web.get("/retire/{api}/{version}", admin.retire),
            web.get("/orders", admin.orders),
            web.get("/brownouts/{api}/{version}", admin.brownout),
            web.put("/brownouts/{api}/{version}", admin.pause_brownout),
            web.delete("/brownouts/{api}/{version}", admin.resume_brownout),
            web.get("/cutovers/{api}/{version}", admin.cutover),
            web.put("/cutovers/{api}/{version}", admin.set_cutover),
            web.delete("/cutovers/{api}/{version}", admin.clear_cutover),
            web.get("/shadows/{api}/{version}", admin.shadow),
            web.delete("/shadows/{api}/{version}", admin.reset_shadow),
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

    async def metrics(self, _: web.Request) -> web.Response:
        # Imported when first asked for: it is memory that a gateway without a monitor saves.
        from gateway.operation.metrics import CONTENT_TYPE, exposition

        return web.Response(body=exposition(self._desk), headers={"Content-Type": CONTENT_TYPE})

    async def usage(self, request: web.Request) -> web.Response:
        api, version = request.query.get("api"), request.query.get("version")
        found = usage(self._desk.ledger, api, version)
        if not found.usage:  # a slip of the pen must not read as if nobody called
            self._check_named(api, version)
        return _json(found)

    async def versions(self, _: web.Request) -> web.Response:
        return _json(versions_of(self._desk.rules))

    async def retire(self, request: web.Request) -> web.Response:
        served = self._served(request)
        desk, within = self._desk, request.query.get("within", WITHIN)
        try:
            found = verdict(
                served, desk.ledger, desk.rules, desk.control.orders, now=time.time(), within=within
            )
        except ValueError as error:
            _refuse(400, "bad_request", str(error))
        return _json(found)

    async def orders(self, _: web.Request) -> web.Response:
        return _json(control.as_json(self._desk.control.orders))

    async def brownout(self, request: web.Request) -> web.Response:
        return self._brownout(self._browned_out(request))

    async def pause_brownout(self, request: web.Request) -> web.Response:
        served = self._browned_out(request)
        await self._desk.control.pause(served)
        return self._brownout(served)

    async def resume_brownout(self, request: web.Request) -> web.Response:
        served = self._browned_out(request)
        await self._desk.control.resume(served)
        return self._brownout(served)

    def _browned_out(self, request: web.Request) -> Served:
        served = self._served(request)
        there = any(leg.brownout is not None for leg in legs_of(self._desk.rules, served))
        if not there and served not in self._desk.control.orders.paused:
            _refuse_missing(served, "brownout")
        return served

    def _brownout(self, served: Served) -> web.Response:
        api, version = served
        paused = served in self._desk.control.orders.paused
        return _json({"api": api, "version": version, "paused": paused})

    async def cutover(self, request: web.Request) -> web.Response:
        return await self._cutover(self._moved(self._served(request)))

    async def set_cutover(self, request: web.Request) -> web.Response:
        served = self._served(request)
        try:
            wanted = msgspec.json.decode(await request.read(), type=_Percent, strict=True)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            _refuse(400, "bad_request", f'{error}; send {{"percent": 25}}, from 0 to 100')
        if not 0 <= wanted.percent <= 100:
            _refuse(400, "bad_request", "'percent' goes from 0 to 100")
        await self._desk.shift.set(self._moved(served), wanted.percent)
        return await self._cutover(served)

    async def clear_cutover(self, request: web.Request) -> web.Response:
        served = self._moved(self._served(request))
        await self._desk.shift.clear(served)
        return await self._cutover(served)

    async def _cutover(self, served: Served) -> web.Response:
        return _json(await self._desk.shift.describe(served))

    async def shadow(self, request: web.Request) -> web.Response:
        return _json(shadow(self._desk.ledger, self._shadowed(request)))

    async def reset_shadow(self, request: web.Request) -> web.Response:
        served = self._shadowed(request)
        await self._desk.reset_shadow(served)
        return _json(shadow(self._desk.ledger, served))

    def _shadowed(self, request: web.Request) -> Served:
        served = self._served(request)
        found = shadow(self._desk.ledger, served)
        there = any(leg.shadow is not None for leg in legs_of(self._desk.rules, served))
        if not (found.compared or found.shed or there):
            _refuse_missing(served, "shadow")
        return served

    def _check_named(self, api: str | None, version: str | None) -> None:
        known = versions_of(self._desk.rules)
        if api is not None and api not in known:
            _refuse(404, "not_found", f"no API is called '{api}'; {suggest(api, known)}")
        labels = [label for name, some in known.items() if api in (None, name) for label in some]
        if version is not None and version not in labels:
            _refuse(404, "not_found", f"no version '{version}'; {suggest(version, labels)}")

    def _moved(self, served: Served) -> Served:
        if served not in self._desk.rules.cutovers:
            _refuse_missing(served, "cutover")
        return served

    def _served(self, request: web.Request) -> Served:
        served = request.match_info["api"], request.match_info["version"]
        try:
            check_known(served, self._desk.rules)
        except ValueError as error:
            _refuse(404, "not_found", str(error))
        return served


class _Percent(msgspec.Struct, forbid_unknown_fields=True):
    percent: float


class _Refused(Exception):
    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


def _refuse(status: int, code: str, detail: str) -> NoReturn:
    raise _Refused(status, code, detail)


def _refuse_missing(served: Served, what: str) -> NoReturn:
    api, version = served
    _refuse(404, "not_found", f"version {version} of {api} has no {what} in the rules")


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
