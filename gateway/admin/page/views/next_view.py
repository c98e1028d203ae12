"""The view Next: the action items."""

import asyncio
from collections.abc import Mapping

from gateway.admin.page.views.audit_view import known_replicas, known_word, latest_changes
from gateway.base.overrides import VersionKey
from gateway.findings.action_items import ActionItem, Situation, action_items
from gateway.findings.notification import NotifyDocument
from gateway.findings.operator import Operator
from gateway.findings.retirable_versions import retirable
from gateway.findings.usage_summary import UsageSummary
from gateway.findings.version_summary import VersionSummary
from gateway.http.turns.cooperation import turns
from gateway.rollout.cutovers import CurrentCutover, DecidedBy
from gateway.store.state import StateView


async def next_items(
    operator: Operator,
    versions: Mapping[VersionKey, VersionSummary],
    view: StateView,
    summaries: Mapping[VersionKey, UsageSummary],
) -> list[ActionItem]:
    """Return the action items, the most urgent first."""
    async for version in turns(versions.values()):
        version.upcoming(view.now)
    cutovers: dict[VersionKey, CurrentCutover] = {}
    for key in operator.rules.cutovers:
        cutovers[key] = operator.state.cutover(key)
    await asyncio.sleep(0)  # requests have their turn
    in_force, refused = operator.state.in_force, operator.reloader.refused
    by_hand = any(each.state.decided_by is DecidedBy.OPERATOR for each in cutovers.values())
    made = (await latest_changes(operator.state))[0] if by_hand or in_force.paused else []
    webhooks = operator.rules.notify.webhooks
    word = await known_word(operator.state) if webhooks else NotifyDocument()
    return action_items(
        Situation(
            now=view.now,
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
            webhooks=[*word.failing(webhooks)],
            services=operator.failing_services(),
        )
    )
