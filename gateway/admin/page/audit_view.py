"""The Audit view: changes by operators and gates, replicas, and notifications."""

import asyncio
from collections.abc import Mapping

from gateway.admin.page.listing import Listing, listing
from gateway.base.overrides import VersionKey
from gateway.findings.action_items import ActionItem, Situation, action_items
from gateway.findings.notifications import DOCUMENT, NotifyDocument, read_document
from gateway.findings.operator import Operator
from gateway.findings.summaries import UsageSummary, VersionSummary, retirable
from gateway.http.cooperative import turns
from gateway.rollout.cutovers import CurrentCutover, DecidedBy
from gateway.rollout.decisions import AuditEntry
from gateway.store.state import FleetView, State, StateError, StateView

_COLUMNS = {
    "when": lambda entry: entry.at,
    "who": lambda entry: entry.who.casefold(),
    "what": lambda entry: entry.what,
    "where": lambda entry: (entry.api, entry.version),
}


async def latest_changes(state: State) -> tuple[list[AuditEntry], str]:
    """Return the audit log, and the error message if it cannot be read, otherwise ""."""
    try:
        return await state.audit(), ""
    except StateError as error:
        return [], str(error)


async def known_replicas(state: State) -> FleetView:
    try:
        return await state.fleet()
    except StateError as error:
        return FleetView([], [f"the replicas cannot be read: {error}"])


async def known_notifications(state: State) -> NotifyDocument:
    try:
        found, _ = await state.read_document(DOCUMENT)
    except StateError:
        return NotifyDocument()
    return read_document(found)


def audit_table(entries: list[AuditEntry], query: Mapping[str, str]) -> Listing[AuditEntry]:
    """Return the latest entries first; `query` has the parameters `find`, `sort` and `page`."""
    text = query.get("find", "").casefold()

    def fits(entry: AuditEntry) -> bool:
        return any(text in str(part).casefold() for part in entry[1:])

    return listing(entries[::-1], query, _COLUMNS, default="-when", fits=fits if text else None)


async def next_items(
    operator: Operator,
    versions: Mapping[VersionKey, VersionSummary],
    view: StateView,
    summaries: Mapping[VersionKey, UsageSummary],
) -> list[ActionItem]:
    async for version in turns(versions.values()):
        version.upcoming(view.now)
    cutovers: dict[VersionKey, CurrentCutover] = {}
    for key in operator.rules.cutovers:
        cutovers[key] = operator.state.cutover(key)
    await asyncio.sleep(0)  # let the event loop serve requests
    in_force, refused = operator.state.in_force, operator.reloader.refused
    by_hand = any(each.state.decided_by is DecidedBy.OPERATOR for each in cutovers.values())
    made = (await latest_changes(operator.state))[0] if by_hand or in_force.paused else []
    webhooks = operator.rules.notify.webhooks
    known = await known_notifications(operator.state) if webhooks else NotifyDocument()
    return action_items(
        Situation(
            now=view.now,
            rules=operator.rules,
            versions=versions,
            summaries=summaries,
            cutovers=cutovers,
            retirable=await retirable(operator, versions, view, summaries),
            overrides=in_force,
            totals=view.totals,
            fleet=await known_replicas(operator.state),
            refused="" if refused is None else refused.summary,
            replica=operator.state.replica,
            unready=operator.unready(),
            failing=tuple(operator.failing_tasks()),
            stale_since=operator.state.stale_since,
            stale_reason=operator.state.stale_reason,
            changes=made,
            webhooks=[*known.failing(webhooks)],
            services=operator.failing_services(),
            certificates=operator.certificate_expiries(),
            documents=operator.problems,
        )
    )
