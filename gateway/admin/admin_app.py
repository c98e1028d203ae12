"""The admin port: health, metrics, usage and overrides, on a port of its own.

Every refusal is a problem detail (RFC 9457), as on the port for clients.
"""

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import msgspec
from aiohttp import web

from gateway.admin.access.authentication import Authentication
from gateway.admin.access.connections import with_expectations
from gateway.admin.access.middlewares import access_middlewares
from gateway.admin.access.rights import (
    JSON,
    AdminProblemError,
    Handler,
    json_answer,
    needs,
    order,
)
from gateway.admin.access.sessions import login_routes
from gateway.admin.page.page_routes import PageRoutes
from gateway.admin.piecewise import send_pieces
from gateway.base.mistakes import suggest
from gateway.base.overrides import VersionKey
from gateway.findings.operator import Operator, check_known
from gateway.observe import log
from gateway.rollout.decisions import overrides_document
from gateway.store.state import StateView

if TYPE_CHECKING:
    from gateway.admin.reports import ShadowReport

# A shadow that was removed is reported as long as one of these counts is not zero.
_SHADOW_CASES = ("compared", "validated", "shed")


async def start_admin(operator: Operator, hosts: Collection[str] = ()) -> web.AppRunner:
    """Return what runs the admin application.

    Args:
        hosts: host names of the port beside addresses, `localhost` and names without a dot.
    """
    runner = web.AppRunner(admin_app(operator, hosts))
    await runner.setup()
    assert runner.server is not None
    runner.server.request_handler = with_expectations(runner.server.request_handler)
    return runner


def admin_app(operator: Operator, hosts: Collection[str] = ()) -> web.Application:
    """Return the admin application, with the middlewares that check access to it."""
    admin = _Admin(operator)
    authentication = Authentication(lambda: operator.rules.admin)
    page = PageRoutes(operator)

    @web.middleware
    async def shown(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await page.show(request, await handler(request))

    access = access_middlewares(operator, authentication, hosts)
    app = web.Application(middlewares=[shown, *access])
    app.on_shutdown.append(page.close)
    app.on_response_prepare.append(_without_releases)
    app.add_routes(
        [
            *page.routes(),
            web.get("/healthz", admin.healthz),
            web.get("/readyz", admin.readyz),
            web.get("/metrics", admin.metrics),
            web.get("/usage", admin.usage),
            web.get("/versions", admin.versions),
            web.get("/retire/{api}/{version}", admin.retire),
            web.get("/history/{api}/{version}", admin.history),
            web.get("/overrides", admin.overrides),
            web.get("/brownouts/{api}/{version}", admin.brownout),
            web.put("/brownouts/{api}/{version}", admin.pause_brownout),
            web.delete("/brownouts/{api}/{version}", admin.resume_brownout),
            web.get("/cutovers/{api}/{version}", admin.cutover),
            web.put("/cutovers/{api}/{version}", admin.set_cutover),
            web.delete("/cutovers/{api}/{version}", admin.clear_cutover),
            web.get("/shadows/{api}/{version}", admin.shadow),
            web.delete("/shadows/{api}/{version}", admin.reset_shadow),
            web.get("/fleet", admin.fleet),
            web.delete("/fleet/{replica}", admin.forget),
            web.get("/audit", admin.audit),
            *notify_routes(operator),
            *login_routes(authentication.log_in, partial(operator.count, "admin_refusals")),
        ]
    )
    return app


async def _without_releases(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.pop("Server", None)  # Python and aiohttp, for whoever asks


class _Admin:
    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    @needs(None)
    async def healthz(self, _: web.Request) -> web.Response:
        return json_answer({"status": "ok"})

    @needs(None)
    async def readyz(self, _: web.Request) -> web.Response:
        reason, failing = self._operator.unready(), self._operator.failing_tasks()
        # A failing task fails no request, and would fail on all replicas alike.
        found: dict[str, object] = {"failing": failing} if failing else {}
        stale = self._operator.state.stale_since
        if stale is not None:  # requests are answered all the same
            from gateway.findings.formatting import format_time

            found["state_stale_since"] = format_time(stale)
        if reason is None:
            return json_answer({"status": "ready", **found})
        return json_answer({"status": "not ready", "reason": reason, **found}, 503)

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        # Imported with the first scrape, so a gateway without monitoring saves the memory.
        from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

        from gateway.admin.metrics import exposition

        pieces = exposition(self._operator)
        return await send_pieces(request, pieces, {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    async def usage(self, request: web.Request) -> web.StreamResponse:
        # Imported with the first request for a report, as metrics are.
        from gateway.admin.reports import usage_json, used_versions

        asked = request.query.get("api"), request.query.get("version")
        view = await self._view(request, clients=False)
        if not used_versions(view, *asked):
            self._check_named(*asked)  # a typing error must not read as no usage
        pieces = usage_json(view, partial(self._view, request), *asked)
        return await send_pieces(request, pieces, {"Content-Type": JSON})

    async def versions(self, _: web.Request) -> web.Response:
        return json_answer(self._operator.rules.labels)

    async def retire(self, request: web.Request) -> web.Response:
        from gateway.findings.retirement import WITHIN, verdict

        key = self._version_key(request)
        operator, within = self._operator, request.query.get("within", WITHIN)
        try:
            found = verdict(
                key,
                await self._view(request, key),
                operator.rules,
                operator.state.in_force,
                within=within,
                documented=await operator.documented.find(operator.rules, key),
            )
        except ValueError as error:
            _refuse(400, "bad_request", str(error))
        return json_answer(found)

    async def history(self, request: web.Request) -> web.Response:
        from gateway.admin.reports import history_report
        from gateway.usage.history import HistoryQuery, Resolution

        key, by = self._version_key(request), request.query.get("by", Resolution.DAY)
        if by not in [*Resolution]:
            _refuse(400, "bad_request", f"'by' is one of {', '.join(Resolution)}")
        view = await self._operator.state.history(HistoryQuery(Resolution(by), key[0]))
        return json_answer(history_report(view, key))

    async def overrides(self, _: web.Request) -> web.Response:
        return json_answer(overrides_document(self._operator.state.in_force))

    async def brownout(self, request: web.Request) -> web.Response:
        return self._brownout_state(self._brownout_key(request))

    async def pause_brownout(self, request: web.Request) -> web.Response:
        key = self._brownout_key(request)
        await self._operator.state.pause(key, await order(request))
        return self._brownout_state(key)

    async def resume_brownout(self, request: web.Request) -> web.Response:
        key = self._brownout_key(request)
        await self._operator.state.resume(key, await order(request))
        return self._brownout_state(key)

    def _brownout_key(self, request: web.Request) -> VersionKey:
        key = self._version_key(request)
        has_rules = any(route.brownout is not None for route in self._operator.rules.routes(key))
        if not has_rules and key not in self._operator.state.in_force.paused:
            _refuse_missing(key, "brownout")
        return key

    def _brownout_state(self, key: VersionKey) -> web.Response:
        api, version = key
        paused = key in self._operator.state.in_force.paused
        return json_answer({"api": api, "version": version, "paused": paused})

    async def cutover(self, request: web.Request) -> web.Response:
        return await self._cutover(self._check_cutover(self._version_key(request)))

    async def set_cutover(self, request: web.Request) -> web.Response:
        key = self._version_key(request)
        try:
            wanted = msgspec.json.decode(await request.read(), type=_Percent, strict=True)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            _refuse(400, "bad_request", f'{error}; send {{"percent": 25}}, from 0 to 100')
        if not 0 <= wanted.percent <= 100:
            _refuse(400, "bad_request", "'percent' goes from 0 to 100")
        self._check_cutover(key)
        await self._operator.state.set_percent(key, wanted.percent, await order(request))
        return await self._cutover(key)

    async def clear_cutover(self, request: web.Request) -> web.Response:
        key = self._check_cutover(self._version_key(request))
        await self._operator.state.clear_percent(key, await order(request))
        return await self._cutover(key)

    async def _cutover(self, key: VersionKey) -> web.Response:
        from gateway.admin.reports import cutover_report

        current = self._operator.state.cutover(key)
        totals = (await self._operator.state.view(key)).totals
        return json_answer(cutover_report(current, await self._operator.uncompared(key, totals)))

    async def shadow(self, request: web.Request) -> web.Response:
        return json_answer(await self._shadow_report(request))

    async def reset_shadow(self, request: web.Request) -> web.Response:
        await self._shadow_report(request)
        await self._operator.state.reset_shadow(self._version_key(request), await order(request))
        return json_answer(await self._shadow_report(request))

    async def fleet(self, _: web.Request) -> web.Response:
        from gateway.admin.reports import fleet_report

        return json_answer(fleet_report(await self._operator.state.fleet()))

    async def forget(self, request: web.Request) -> web.Response:
        await self._operator.state.forget(request.match_info["replica"], await order(request))
        return await self.fleet(request)

    async def audit(self, _: web.Request) -> web.Response:
        from gateway.admin.reports import audit_report

        return json_answer(audit_report(await self._operator.state.audit()))

    async def _view(
        self, request: web.Request, key: VersionKey | None = None, *, clients: bool = True
    ) -> StateView:
        replica = request.query.get("replica")
        return await self._operator.state.view(key, replica, clients=clients)

    async def _shadow_report(self, request: web.Request) -> "ShadowReport":
        from gateway.admin.reports import shadow_report

        key, operator = self._version_key(request), self._operator
        view = await self._view(request, key)
        totals = view.totals
        has_rules = any(route.shadow is not None for route in operator.rules.routes(key))
        counted = (totals.counted(kind, *key) for kind in _SHADOW_CASES)
        if not (has_rules or any(any(counts) for counts in counted)):
            _refuse_missing(key, "shadow")
        missing = await operator.uncompared(key, totals)
        return shadow_report(totals, key, missing, view.replica)

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


def notify_routes(operator: Operator) -> list[web.RouteDef]:
    async def show(_: web.Request) -> web.Response:
        # Imported with the first request, as other reports are.
        from gateway.findings.notifications import DOCUMENT, read_document

        document, _now = await operator.state.read_document(DOCUMENT)
        return json_answer(read_document(document).report())

    async def test(request: web.Request) -> web.Response:
        from gateway.findings.notifier import chosen, send_test

        change, name = await order(request), request.query.get("webhook")
        try:
            webhooks = chosen(operator.rules.notify, name)
        except LookupError as error:
            raise AdminProblemError(404, "not_found", str(error)) from None
        await operator.state.record(change, "notification test", name or "")
        errors = await send_test(operator, webhooks, change.who)
        log.event("notify_tested", who=change.who, webhook=name)
        return json_answer([{"webhook": name, "error": each} for name, each in errors.items()])

    return [web.get("/notifications", show), web.post("/notifications/test", test)]
