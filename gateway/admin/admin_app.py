"""The admin port: health, metrics, usage and overrides, on a port of its own.

Every refusal is a problem detail (RFC 9457), as on the port for clients.
"""

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, NoReturn

import msgspec
from aiohttp import web

from gateway.admin.admin_guard import AdminGuard, AdminProblemError, Handle
from gateway.admin.operator import Operator, check_known
from gateway.config.text.mistakes import suggest
from gateway.core.overrides import VersionKey
from gateway.state.active_overrides import as_json

if TYPE_CHECKING:
    from gateway.admin.shadow_report import ShadowReport


def admin_app(operator: Operator, guard: AdminGuard) -> web.Application:
    """Return the admin application; the guard checks each request first."""
    admin = _Admin(operator)

    @web.middleware
    async def checked(request: web.Request, handler: Handle) -> web.StreamResponse:
        return await guard.check(request, handler)

    app = web.Application(middlewares=[_problems, checked])
    app.add_routes(
        [
            web.get("/healthz", admin.healthz),
            web.get("/readyz", admin.readyz),
            web.get("/metrics", admin.metrics),
            web.get("/usage", admin.usage),
            web.get("/versions", admin.versions),
            web.get("/retire/{api}/{version}", admin.retire),
            web.get("/overrides", admin.overrides),
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
    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    async def healthz(self, _: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def readyz(self, _: web.Request) -> web.Response:
        reason, failing = self._operator.unready(), self._operator.failing_tasks(time.time())
        # A task that fails makes no request fail, and would fail on all replicas alike.
        found: dict[str, object] = {"failing": failing} if failing else {}
        if reason is None:
            return _json({"status": "ready", **found})
        return _json({"status": "not ready", "reason": reason, **found}, 503)

    async def metrics(self, _: web.Request) -> web.Response:
        # Imported with the first scrape: a gateway without a monitor saves that memory.
        from gateway.admin.metrics import CONTENT_TYPE, exposition

        return web.Response(body=exposition(self._operator), headers={"Content-Type": CONTENT_TYPE})

    async def usage(self, request: web.Request) -> web.Response:
        # Reports are imported when they are first asked for, as metrics are.
        from gateway.admin.usage_report import usage

        api, version = request.query.get("api"), request.query.get("version")
        found = usage(self._operator.totals, api, version)
        if not found.usage:  # a typing error must not read as no usage
            self._check_named(api, version)
        return _json(found)

    async def versions(self, _: web.Request) -> web.Response:
        return _json(self._operator.rules.labels)

    async def retire(self, request: web.Request) -> web.Response:
        from gateway.admin.retirement import WITHIN, verdict

        key = self._version_key(request)
        operator, within = self._operator, request.query.get("within", WITHIN)
        try:
            found = verdict(
                key,
                operator.totals,
                operator.rules,
                operator.overrides.in_force,
                now=time.time(),
                within=within,
            )
        except ValueError as error:
            _refuse(400, "bad_request", str(error))
        return _json(found)

    async def overrides(self, _: web.Request) -> web.Response:
        return _json(as_json(self._operator.overrides.in_force))

    async def brownout(self, request: web.Request) -> web.Response:
        return self._brownout_state(self._brownout_key(request))

    async def pause_brownout(self, request: web.Request) -> web.Response:
        key = self._brownout_key(request)
        await self._operator.overrides.pause(key)
        return self._brownout_state(key)

    async def resume_brownout(self, request: web.Request) -> web.Response:
        key = self._brownout_key(request)
        await self._operator.overrides.resume(key)
        return self._brownout_state(key)

    def _brownout_key(self, request: web.Request) -> VersionKey:
        key = self._version_key(request)
        has_rules = any(route.brownout is not None for route in self._operator.rules.routes(key))
        if not has_rules and key not in self._operator.overrides.in_force.paused:
            _refuse_missing(key, "brownout")
        return key

    def _brownout_state(self, key: VersionKey) -> web.Response:
        api, version = key
        paused = key in self._operator.overrides.in_force.paused
        return _json({"api": api, "version": version, "paused": paused})

    async def cutover(self, request: web.Request) -> web.Response:
        return await self._cutover(self._check_cutover(self._version_key(request)))

    async def set_cutover(self, request: web.Request) -> web.Response:
        key = self._version_key(request)
        try:
            wanted = msgspec.json.decode(await request.read(), type=_Percent, strict=True)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            _refuse(400, "bad_request", f'{error}; send {{"percent": 25}}, from 0 to 100')
        if not 0 <= wanted.percent <= 100:
            _refuse(400, "bad_request", "'percent' goes from 0 to 100")
        await self._operator.cutovers.set(self._check_cutover(key), wanted.percent)
        return await self._cutover(key)

    async def clear_cutover(self, request: web.Request) -> web.Response:
        key = self._check_cutover(self._version_key(request))
        await self._operator.cutovers.clear(key)
        return await self._cutover(key)

    async def _cutover(self, key: VersionKey) -> web.Response:
        from gateway.admin.cutover_report import cutover_report

        return _json(cutover_report(await self._operator.cutovers.current(key)))

    async def shadow(self, request: web.Request) -> web.Response:
        return _json(self._shadow_report(self._shadow_key(request)))

    async def reset_shadow(self, request: web.Request) -> web.Response:
        key = self._shadow_key(request)
        await self._operator.reset_shadow(key)
        return _json(self._shadow_report(key))

    def _shadow_report(self, key: VersionKey) -> "ShadowReport":
        from gateway.admin.shadow_report import shadow_report

        return shadow_report(self._operator.totals, key)

    def _shadow_key(self, request: web.Request) -> VersionKey:
        key = self._version_key(request)
        found = self._shadow_report(key)
        has_rules = any(route.shadow is not None for route in self._operator.rules.routes(key))
        if not (found.compared or found.shed or has_rules):
            _refuse_missing(key, "shadow")
        return key

    def _check_named(self, api: str | None, version: str | None) -> None:
        known = self._operator.rules.labels
        if api is not None and api not in known:
            _refuse(404, "not_found", f"no API is called '{api}'; {suggest(api, known)}")
        labels = [label for name, some in known.items() if api in (None, name) for label in some]
        if version is not None and version not in labels:
            _refuse(404, "not_found", f"no version '{version}'; {suggest(version, labels)}")

    def _check_cutover(self, key: VersionKey) -> VersionKey:
        if key not in self._operator.rules.cutovers:
            _refuse_missing(key, "cutover")
        return key

    def _version_key(self, request: web.Request) -> VersionKey:
        key = request.match_info["api"], request.match_info["version"]
        try:
            check_known(key, self._operator.rules)
        except ValueError as error:
            _refuse(404, "not_found", str(error))
        return key


class _Percent(msgspec.Struct, forbid_unknown_fields=True):
    percent: float


def _refuse(status: int, code: str, detail: str) -> NoReturn:
    raise AdminProblemError(status, code, detail)


def _refuse_missing(key: VersionKey, what: str) -> NoReturn:
    api, version = key
    _refuse(404, "not_found", f"version {version} of {api} has no {what} in the rules")


@web.middleware
async def _problems(request: web.Request, handler: Handle) -> web.StreamResponse:
    try:
        return await handler(request)
    except AdminProblemError as error:
        return _problem(request, error.status, error.code, str(error))
    except TimeoutError:
        detail = "A worker has not confirmed the change in time; it applies it as soon as it can."
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
