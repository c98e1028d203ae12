"""The cutover of a version: where it stands, and each gate with its value, limit and curve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from gateway.admin.cutover_report import (
    CutoverReport,
    adds,
    cutover_report,
    gate_name,
    is_shown,
)
from gateway.admin.page.charts import line, top_of
from gateway.base.overrides import VersionKey
from gateway.findings.formatting import duration_text
from gateway.findings.gate_curves import GateCurves, GateName, GatePoint
from gateway.findings.operator import Operator
from gateway.rollout.cutover import VersionCutover
from gateway.rollout.cutovers import CurrentCutover
from gateway.rollout.gates import GateResult

HEIGHT = 28.0
"""The height of a curve."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """A gate in the table.

    Attributes:
        gate: what it compares, and its result.
        name: for people.
        new: the value on the new route, as a text; `–` where nothing was seen.
        old: the same on the old route.
        limit: as a text.
        used: the share of what it allows that is used up, at most 1; None if nothing was seen.
        new_path: the curve of the new route, as an SVG path.
        old_path: that of the old route.
        limit_y: where the limit lies in the picture; None above its edge.
    """

    gate: GateResult
    name: str
    new: str
    old: str
    limit: str
    used: float | None
    new_path: str
    old_path: str
    limit_y: float | None


@dataclass(frozen=True, slots=True)
class CutoverPart:
    """What is shown of a cutover.

    Attributes:
        report: its state.
        rule: as the rules have it.
        since: since when it stands so, in seconds since 1970.
        seen: its state in a word, which a form sends back; an act on another state is refused.
        gates: those that have seen something, or that always are of interest.
    """

    report: CutoverReport
    rule: VersionCutover
    since: float
    seen: str
    gates: list[GateRow]


async def cutover_part(
    operator: Operator, key: VersionKey, uncompared: list[str]
) -> CutoverPart | None:
    """Return what is shown of a cutover; None if the rules have none."""
    if key not in operator.rules.cutovers:
        return None
    current = operator.state.cutover(key)
    report = cutover_report(current, uncompared)
    return CutoverPart(
        report,
        current.cutover,
        current.state.since,
        current.state.word,
        _rows(current, report, operator.curves),
    )


def _rows(current: CurrentCutover, report: CutoverReport, curves: GateCurves) -> list[GateRow]:
    known = curves.of(current.cutover.key)
    return [
        _row(gate, result.pressure, known, rolled_back=report.gates_at is not None)
        for gate, result in zip(report.gates, current.results, strict=True)
        if is_shown(gate)
    ]


def _row(
    gate: GateResult,
    used: float | None,
    known: Mapping[GateName, Sequence[GatePoint]],
    *,
    rolled_back: bool,
) -> GateRow:
    points = list(known.get((gate.gate, gate.measure), ()))
    if rolled_back:  # what made it go back came after the latest point
        points.append(GatePoint(inf, gate.new, gate.old))
    new, old = [point.new for point in points], [point.old for point in points]
    # The limit of a share is added to the old route's, that of a mean multiplies it.
    allowed = gate.limit
    if gate.gate == "latency":
        allowed = gate.limit * (gate.old or 0.0)
    elif adds(gate):
        allowed = gate.limit + (gate.old or 0.0)
    seen = [value for value in (*new, *old) if value is not None]
    top = top_of([*seen, min(allowed, 3 * max(seen, default=allowed))])
    return GateRow(
        gate,
        gate_name(gate),
        _value(gate.gate, gate.new, gate.new_count, gate.new_requests),
        _value(gate.gate, gate.old, gate.old_count, gate.old_requests),
        _limit(gate),
        None if used is None else min(used, 1.0),
        line(new, HEIGHT, top),
        line(old, HEIGHT, top),
        None if not 0 < allowed <= top else HEIGHT - HEIGHT * allowed / top,
    )


def _value(kind: str, value: float | None, count: int, requests: int) -> str:
    if value is None:
        return "–"
    if kind == "latency":
        return f"{duration_text(value)} of {requests:,}"
    return f"{value * 100:.3g}% ({count:,} of {requests:,})"


def _limit(gate: GateResult) -> str:
    if gate.gate == "latency":
        return f"{gate.limit:g} × old"
    return f"{gate.limit * 100:.3g}% {'more' if adds(gate) else ''}".rstrip()
