"""The view of one version: who calls it, whether it can be retired, its cutover and its shadow."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gateway.admin.page.charts import Mark, TimeLine
from gateway.admin.page.listing import Listing
from gateway.admin.page.views.callers_view import Caller, callers
from gateway.admin.page.views.cutover_view import CutoverPart, cutover_part
from gateway.admin.page.views.shadow_view import ShadowPart, shadow_part
from gateway.admin.page.views.trend_view import TrendPart, trend_part
from gateway.admin.page.views.versions_view import phase, span_of, time_line
from gateway.base.overrides import VersionKey
from gateway.findings.operator import Operator
from gateway.findings.retirement import WITHIN, Verdict, verdict
from gateway.findings.uncompared import uncompared_operations
from gateway.findings.version_summary import VersionSummary
from gateway.lifecycle.brownout import WindowOccurrence
from gateway.rollout.decisions import AuditEntry
from gateway.usage.delta import OperationName

# So long a view waits for the OpenAPI document of a version; the next one has it.
_PATIENCE = 0.05


@dataclass(frozen=True, slots=True)
class VersionPage:
    """What the view of a version shows.

    Attributes:
        version: its summary.
        phase: where it is in its life.
        now: in seconds since 1970, by the clock of the counts.
        since: when counting began.
        callers: one page of its clients.
        alone: the name of this gateway if the counts are its own alone, as the store of the state
            is away; None if they are of all.
        verdict: whether it can be retired; None if the API has no versions.
        within: how far back that looks.
        line: its notice, brownouts and end on a time line.
        span: the part of time that the line shows.
        brownouts: the next ten.
        paused: whether its brownouts are paused.
        cutover: its cutover; None if it has none.
        shadow: what its shadow has found; None if it has none.
        trend: its requests and callers over a year, and where that leads.
        latest: the latest change of it that somebody made; None if there was none.
    """

    version: VersionSummary
    phase: str
    now: float
    since: float
    callers: Listing[Caller]
    alone: str | None
    verdict: Verdict | None
    within: str
    line: list[Mark]
    span: TimeLine
    brownouts: list[WindowOccurrence]
    paused: bool
    cutover: CutoverPart | None
    shadow: ShadowPart | None
    trend: TrendPart
    latest: AuditEntry | None

    @property
    def key(self) -> VersionKey:
        """The API and the label."""
        return self.version.key


async def version_page(
    operator: Operator, version: VersionSummary, query: Mapping[str, str]
) -> VersionPage:
    """Return what the view of a version shows.

    Raises:
        ValueError: the parameter `within` is not a valid period.
    """
    key = version.key
    view, days, minutes, latest = await operator.state.version(key)
    now = view.now
    span = span_of(now)
    in_force, within = operator.state.in_force, query.get("within") or WITHIN
    operations = await documented(operator, key)
    missing = uncompared_operations(key, view.totals, operator.rules, operations)
    await asyncio.sleep(0)  # requests have their turn, here and below
    shown = callers(view.totals, key, query)
    await asyncio.sleep(0)
    judged = None
    if key[1]:
        judged = verdict(key, view, operator.rules, in_force, within=within, documented=operations)
    await asyncio.sleep(0)
    return VersionPage(
        version=version,
        phase=phase(version, now),
        now=now,
        since=view.totals.since,
        callers=shown,
        alone=view.replica,
        verdict=judged,
        within=within,
        line=list(time_line(version, now, span)),
        span=span,
        brownouts=version.upcoming(now),
        paused=key in in_force.paused,
        cutover=await cutover_part(operator, key, missing),
        shadow=shadow_part(version, view.totals, missing),
        trend=await trend_part(version, days, minutes, now),
        latest=latest,
    )


async def documented(operator: Operator, key: VersionKey) -> Collection[OperationName] | None:
    """Return the operations of a version's OpenAPI document; None if it is not at hand yet."""
    finding = asyncio.ensure_future(operator.documented.find(operator.rules, key))
    done, _ = await asyncio.wait([finding], timeout=_PATIENCE)
    return finding.result() if done else None
