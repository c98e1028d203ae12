"""The JSON API of the admin port, except for health and metrics."""

from functools import partial
from typing import NoReturn

import msgspec
from aiohttp import web

from gateway.admin.access.rights import JSON, AdminProblemError, asked_client, json_answer, order
from gateway.admin.piecewise import send_pieces
from gateway.admin.reports import (
    ShadowReport,
    audit_report,
    cutover_report,
    fleet_report,
    history_report,
    set_aside_report,
    shadow_report,
    usage_json,
    used_versions,
)
from gateway.base.dates import parse_date
from gateway.base.mistakes import suggest
from gateway.base.overrides import VersionKey
from gateway.findings.formatting import client_text
from gateway.findings.notifications import DOCUMENT, read_document
from gateway.findings.notifier import chosen, send_test
from gateway.findings.operator import Operator, check_known
from gateway.findings.retirement import WITHIN, verdict
from gateway.observe import log
from gateway.rollout.cutovers import next_percent
from gateway.rollout.decisions import overrides_document
from gateway.store.state import StateView
from gateway.usage.history import HistoryQuery, Resolution

# A shadow that was removed from the configuration is still reported if one of these counts is not
# 0.
_SHADOW_CASES = ("compared", "validated", "shed")


class AdminApi:
    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    async def usage(self, request: web.Request) -> web.StreamResponse:
        asked = request.query.get("api"), request.query.get("version")
        view = await self._view(request, clients=False)
        if not used_versions(view, *asked):
            self._check_named(*asked)  # a typing error must not look like a version without usage
        aside = self._operator.state.in_force.aside(view.now)
        pieces = usage_json(view, partial(self._view, request), *asked, aside)
        return await send_pieces(request, pieces, {"Content-Type": JSON})

    async def clients_set_aside(self, _: web.Request) -> web.Response:
        aside = self._operator.state.in_force.aside(self._operator.state.now)
        return json_answer(set_aside_report(aside))

    async def set_aside(self, request: web.Request) -> web.Response:
        client, change = asked_client(request.query.get("client", "")), await order(request)
        if not change.why:
            _refuse(400, "reason_missing", "a client is set aside for a reason; add --why TEXT")
        try:
            until = parse_date(request.query.get("until", ""))
            await self._operator.state.set_aside(client, until, change)
        except ValueError as error:
            _refuse(400, "bad_request", str(error))
        return await self.clients_set_aside(request)

    async def include(self, request: web.Request) -> web.Response:
        client, change = asked_client(request.query.get("client", "")), await order(request)
        if client not in self._operator.state.in_force.aside(self._operator.state.now):
            _refuse(404, "not_found", f"{client_text(client)} is not set aside")
        await self._operator.state.set_aside(client, None, change)
        return await self.clients_set_aside(request)

    async def versions(self, _: web.Request) -> web.Response:
        return json_answer(self._operator.rules.labels)

    async def retire(self, request: web.Request) -> web.Response:
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
        key, by = self._version_key(request), request.query.get("by", Resolution.DAY)
        if by not in [*Resolution]:
            _refuse(400, "bad_request", f"'by' must be one of {', '.join(Resolution)}")
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
            _refuse(400, "bad_request", "'percent' must be from 0 to 100")
        self._check_cutover(key)
        await self._operator.state.set_percent(key, wanted.percent, await order(request))
        return await self._cutover(key)

    async def promote_cutover(self, request: web.Request) -> web.Response:
        key = self._check_cutover(self._version_key(request))
        current = self._operator.state.cutover(key)
        if next_percent(current.cutover, current.state) is None:
            state = current.state
            detail = f"no step follows {state.percent:g}% ({state.why}); use set or clear"
            _refuse(400, "bad_request", detail)
        await self._operator.state.promote(key, await order(request))
        return await self._cutover(key)

    async def clear_cutover(self, request: web.Request) -> web.Response:
        key = self._check_cutover(self._version_key(request))
        await self._operator.state.clear_percent(key, await order(request))
        return await self._cutover(key)

    async def _cutover(self, key: VersionKey) -> web.Response:
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
        return json_answer(fleet_report(await self._operator.state.fleet()))

    async def forget(self, request: web.Request) -> web.Response:
        await self._operator.state.forget(request.match_info["replica"], await order(request))
        return await self.fleet(request)

    async def audit(self, _: web.Request) -> web.Response:
        return json_answer(audit_report(await self._operator.state.audit()))

    async def notifications(self, _: web.Request) -> web.Response:
        document, _now = await self._operator.state.read_document(DOCUMENT)
        return json_answer(read_document(document).report())

    async def test_notification(self, request: web.Request) -> web.Response:
        operator, change = self._operator, await order(request)
        name = request.query.get("webhook")
        try:
            webhooks = chosen(operator.rules.notify, name)
        except LookupError as error:
            raise AdminProblemError(404, "not_found", str(error)) from None
        await operator.state.record(change, "notification test", name or "")
        errors = await send_test(operator, webhooks, change.who)
        log.event("notify_tested", who=change.who, webhook=name)
        return json_answer([{"webhook": name, "error": each} for name, each in errors.items()])

    async def _view(
        self, request: web.Request, key: VersionKey | None = None, *, clients: bool = True
    ) -> StateView:
        replica = request.query.get("replica")
        return await self._operator.state.view(key, replica, clients=clients)

    async def _shadow_report(self, request: web.Request) -> ShadowReport:
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
    _refuse(404, "not_found", f"version {version} of {api} has no {what} in the configuration")
