"""The operator's page: the handlers of its URLs.

Every view is a complete document with its own URL. The script only keeps it up to date.
"""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from gateway.access.admin import Right
from gateway.admin.access.rights import PRINCIPAL, KnownBy, order
from gateway.admin.access.sessions import form_token
from gateway.admin.page.actions import ACTIONS
from gateway.admin.page.audit_view import (
    audit_table,
    known_notifications,
    known_replicas,
    latest_changes,
    next_items,
)
from gateway.admin.page.live_updates import LiveUpdates
from gateway.admin.page.rendering import asset_answer, assets, html
from gateway.admin.page.rules_view import (
    CheckedDraft,
    asked,
    checked_draft,
    example,
    explained,
    rules_page,
)
from gateway.admin.page.services_view import services_page
from gateway.admin.page.version_view import callers_csv, version_page
from gateway.admin.page.versions_view import PHASES, span_of, versions_table
from gateway.admin.piecewise import send_pieces
from gateway.base.mistakes import suggest
from gateway.base.overrides import VersionKey
from gateway.findings.action_items import name_of, version_link
from gateway.findings.operator import Operator
from gateway.findings.summaries import UsageSummaries, VersionSummary, version_summaries
from gateway.rollout.decisions import ChangedMeanwhileError
from gateway.routing.snapshot import Snapshot


class Page:
    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._usage = UsageSummaries(operator)
        self._updates = LiveUpdates(operator)
        self._known: tuple[Snapshot, Mapping[VersionKey, VersionSummary]] | None = None

    def close(self) -> None:
        self._updates.close()

    async def events(self, request: web.Request) -> web.StreamResponse:
        return await self._updates.answer(request)

    async def next(self, request: web.Request) -> web.Response:
        view, summaries = await self._usage.latest()
        items = await next_items(self._operator, self._version_summaries(), view, summaries)
        find = request.query.get("find", "")
        shown = [
            each
            for each in items
            if find.casefold() in f"{each.subject} {each.finding.kind} {each.reason}".casefold()
        ]
        values = {"items": shown, "total": len(items), "find": find}
        return await self._html(request, "next.html", values)

    async def versions(self, request: web.Request) -> web.Response:
        view, summaries = await self._usage.latest()
        in_force = self._operator.state.in_force
        versions = self._version_summaries()
        table = await versions_table(versions, summaries, in_force, view.now, request.query)
        values = {
            "table": table,
            "table_span": span_of(view.now),
            "now": view.now,
            "since": view.totals.since,
            "alone": view.replica,
            "phases": PHASES,
        }
        return await self._html(request, "versions.html", values)

    async def version(self, request: web.Request) -> web.Response:
        version = self._find(request)
        if version is None:
            return await self._missing(request)
        return await self._version(request, version)

    async def act(self, request: web.Request) -> web.Response:
        version, part = self._find(request), request.match_info["part"]
        if version is None:
            return await self._missing(request)
        try:
            await ACTIONS[part](self._operator, version.key, request)
        except ChangedMeanwhileError as stale:
            return await self._version(request, version, str(stale), 409)
        location = f"{version_link(version.key)}?done={part}#{part}"
        return web.Response(status=303, headers={"Location": location})

    async def forget(self, request: web.Request) -> web.Response:
        await self._operator.state.forget(request.match_info["replica"], await order(request))
        return web.Response(status=303, headers={"Location": "/page/audit#replicas"})

    async def _version(
        self, request: web.Request, version: VersionSummary, stale: str = "", status: int = 200
    ) -> web.Response:
        try:
            found = await version_page(self._operator, version, request.query)
        except ValueError as error:
            return await self.problem(request, 400, str(error))
        done = request.query.get("done", "")
        values = {"found": found, "stale": stale, "done": done if done in ACTIONS else ""}
        return await self._html(request, "version.html", values, status)

    async def callers(self, request: web.Request) -> web.StreamResponse:
        version = self._find(request)
        if version is None:
            return await self._missing(request)
        view = await self._operator.state.view(version.key)
        alone = () if view.replica is None else (view.replica, "alone")
        name = "-".join(step for step in (*version.key, *alone) if step)
        safe = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name)
        disposition = f'attachment; filename="callers-{safe}.csv"'
        fields = {
            "Content-Type": "text/csv; charset=utf-8",
            "Content-Disposition": disposition,
            "Cache-Control": "no-store",
        }
        pieces = callers_csv(view.totals, version.key, request.query)
        return await send_pieces(request, pieces, fields)

    async def services(self, request: web.Request) -> web.Response:
        state = self._operator.state
        fleet = await known_replicas(state)
        values = services_page(self._operator, fleet, state.now, request.query)
        return await self._html(request, "services.html", values)

    async def rules(self, request: web.Request) -> web.Response:
        return await self._rules(request, CheckedDraft())

    async def check_draft(self, request: web.Request) -> web.Response:
        fields = await request.post()
        text = fields.get("draft", "")
        draft = await checked_draft(self._operator, text if isinstance(text, str) else "")
        return await self._rules(request, draft, 422 if draft.mistakes else 200)

    async def _rules(
        self, request: web.Request, draft: CheckedDraft, status: int = 200
    ) -> web.Response:
        typed = asked(request.query)
        steps, wrong = [], ""
        if typed.request:
            try:
                steps = explained(self._operator, typed)
            except ValueError as error:
                wrong, status = str(error), 422
        values = {
            "found": await rules_page(self._operator),
            "typed": typed,
            "example": example(self._operator.rules),
            "steps": steps,
            "wrong": wrong,
            "draft": draft,
        }
        return await self._html(request, "rules.html", values, status)

    async def audit(self, request: web.Request) -> web.Response:
        state = self._operator.state
        changes, unread = await latest_changes(state)
        known, webhooks = await known_notifications(state), self._operator.rules.notify.webhooks
        values = {
            "table": audit_table(changes, request.query),
            "unread": unread,
            "fleet": await known_replicas(state),
            "notifications": known.items[::-1],
            "webhooks": [*webhooks],
            "failing_webhooks": [*known.failing(webhooks)],
        }
        return await self._html(request, "audit.html", values)

    async def static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in assets():
            return await self.problem(request, 404, "There is no such file.")
        return asset_answer(name, request.query_string)

    async def problem(self, request: web.Request, status: int, detail: str) -> web.Response:
        found = self._find(request)
        back = None if found is None else (version_link(found.key), name_of(found.key))
        values = {"status": status, "detail": detail, "back": back}
        return await self._html(request, "problem.html", values, status)

    async def _missing(self, request: web.Request) -> web.Response:
        api, label = request.match_info["api"], request.match_info.get("version", "")
        labels: dict[str, list[str]] = {}
        for name, version in self._version_summaries():
            labels.setdefault(name, []).extend([version] if version else [])
        if api not in labels:
            detail = f"No API is called '{api}'; {suggest(api, labels)}"
        elif label:
            detail = f"The API {api} has no version '{label}'; {suggest(label, labels[api])}"
        else:
            detail = f"The address names no version of {api}; {suggest(label, labels[api])}"
        return await self.problem(request, 404, detail)

    def _version_summaries(self) -> Mapping[VersionKey, VersionSummary]:
        rules = self._operator.rules
        if self._known is None or self._known[0] is not rules:
            self._known = rules, version_summaries(rules)
        return self._known[1]

    def _find(self, request: web.Request) -> VersionSummary | None:
        key = request.match_info.get("api", ""), request.match_info.get("version", "")
        return self._version_summaries().get(key)

    async def _html(
        self, request: web.Request, name: str, values: Mapping[str, Any], status: int = 200
    ) -> web.Response:
        operator = self._operator
        around = {
            "view": name.removesuffix(".html"),
            "path": request.rel_url.raw_path,
            "replica": operator.state.replica,
            "workers": operator.workers(),
            "docs": operator.docs,
            "stale_since": operator.state.stale_since,
            **_seat(request),
        }
        return await html(name, {**around, **values}, status)


def _seat(request: web.Request) -> dict[str, object]:
    who = request.get(PRINCIPAL)
    known = who is not None and who.may(Right.READ)
    may = who is not None and who.may(Right.OPERATE)
    leaves = who is not None and who.by is KnownBy.SESSION
    return {
        "who": "" if who is None else who.name,
        "known": known,
        "may": may,
        "leaves": leaves,
        "open": who is None or who.by in (KnownBy.NOTHING, KnownBy.COMMAND),
        "form_token": form_token(request) if may or leaves else "",
    }
