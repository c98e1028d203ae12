"""Versions that can be retired."""

from collections.abc import Mapping
from itertools import islice

from gateway.base.overrides import VersionKey
from gateway.findings.operator import Operator
from gateway.findings.retirement import WITHIN, verdict
from gateway.findings.usage_summary import UsageSummary
from gateway.findings.version_summary import VersionSummary
from gateway.http.turns.cooperation import turns
from gateway.store.state import StateView

# The maximum number of verdicts at a time.
_JUDGED = 50
_WITHIN_SECONDS = 30 * 86_400


async def _goes(operator: Operator, key: VersionKey) -> bool:
    view, in_force = await operator.state.view(key), operator.state.in_force
    return verdict(key, view, operator.rules, in_force, within=WITHIN).answer == "yes"


async def retirable(
    operator: Operator,
    versions: Mapping[VersionKey, VersionSummary],
    view: StateView,
    summaries: Mapping[VersionKey, UsageSummary],
) -> list[VersionKey]:
    """Return the versions after their sunset whose verdict is `yes`."""
    begin = view.now - _WITHIN_SECONDS
    over = [
        key
        for key, version in versions.items()
        if version.terms is not None
        and version.terms.sunset <= view.now
        and view.totals.since <= begin
        and summaries.get(key, UsageSummary()).served < begin
    ]
    return [key async for key in turns(islice(over, _JUDGED)) if await _goes(operator, key)]
