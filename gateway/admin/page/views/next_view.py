"""The view Next: what waits for somebody."""

import asyncio
from collections.abc import Mapping
from itertools import islice

from gateway.admin.notifications.failing_webhooks import failing_webhooks
from gateway.admin.notifications.notification import NotifyDocument
from gateway.admin.operator import Operator
from gateway.admin.page.catalog import CatalogVersion
from gateway.admin.page.standing import Standing
from gateway.admin.page.views.audit_view import known_replicas, known_word, latest_changes
from gateway.admin.page.waiting import DAY, Situation, Waiting, waiting
from gateway.admin.reports.piecewise import turns
from gateway.admin.retirement import WITHIN, verdict
from gateway.core.cutover.cutover_state import DecidedBy
from gateway.core.overrides import VersionKey
from gateway.state.cutover_controller import CurrentCutover
from gateway.state.state_access import StateView

# So many versions are judged at most for one view.
_JUDGED = 50
_WITHIN_SECONDS = 30 * DAY


async def next_items(
    operator: Operator,
    versions: Mapping[VersionKey, CatalogVersion],
    view: StateView,
    standings: Mapping[VersionKey, Standing],
) -> list[Waiting]:
    """Return what waits for somebody, the most urgent first."""
    async for version in turns(versions.values()):
        version.upcoming(view.now)
    cutovers: dict[VersionKey, CurrentCutover] = {}
    for key in operator.rules.cutovers:
        cutovers[key] = await operator.state.cutover(key)
    await asyncio.sleep(0)  # requests have their turn
    in_force, refused = operator.state.in_force, operator.reloader.refused
    by_hand = any(each.state.decided_by is DecidedBy.OPERATOR for each in cutovers.values())
    made = (await latest_changes(operator.state))[0] if by_hand or in_force.paused else []
    webhooks = [webhook.name for webhook in operator.rules.notify.webhooks]
    word = await known_word(operator.state) if webhooks else NotifyDocument()
    return waiting(
        Situation(
            now=view.now,
            versions=versions,
            standings=standings,
            cutovers=cutovers,
            retirable=await retirable(operator, versions, view, standings),
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
            webhooks=[*failing_webhooks(word, webhooks)],
            services=operator.failing_services(),
        )
    )


async def _goes(operator: Operator, key: VersionKey) -> bool:
    view, in_force = await operator.state.view(key), operator.state.in_force
    return verdict(key, view, operator.rules, in_force, within=WITHIN).answer == "yes"


async def retirable(
    operator: Operator,
    versions: Mapping[VersionKey, CatalogVersion],
    view: StateView,
    standings: Mapping[VersionKey, Standing],
) -> list[VersionKey]:
    """Return the versions that nothing speaks against retiring, of those that have ended."""
    begin = view.now - _WITHIN_SECONDS
    over = [
        key
        for key, version in versions.items()
        if version.terms is not None
        and version.terms.sunset <= view.now
        and view.totals.since <= begin
        and standings.get(key, Standing()).served < begin
    ]
    return [key async for key in turns(islice(over, _JUDGED)) if await _goes(operator, key)]
