"""The view of one version: clients, verdict, cutover, shadow and trend.

Each part of the view is a mapping of values for the template `version.html`.
"""

import asyncio
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from math import inf
from typing import Any, NamedTuple

from gateway.admin.page.audit_view import latest_changes
from gateway.admin.page.charts import TimeLine, area, line, top_of
from gateway.admin.page.listing import Listing, listing
from gateway.admin.page.rules_view import edit
from gateway.admin.page.versions_view import phase, span_of, time_line
from gateway.admin.piecewise import batches
from gateway.admin.reports import (
    CutoverReport,
    FieldReport,
    ShadowReport,
    adds,
    cutover_report,
    gate_name,
    is_shown,
    shadow_report,
    share_text,
)
from gateway.base.overrides import VersionKey
from gateway.findings.conditions import ANSWERS
from gateway.findings.formatting import client_text, duration_text, format_time
from gateway.findings.gate_curves import GateCurves, GateName, GatePoint, curve_seconds
from gateway.findings.next_steps import next_step, steps
from gateway.findings.operator import Operator
from gateway.findings.retirement import WITHIN, verdict
from gateway.findings.suggested_fix import DifferenceSample, suggest_fix
from gateway.findings.summaries import VersionSummary
from gateway.findings.uncompared import uncompared_operations
from gateway.http.cooperative import turns
from gateway.rollout.cutovers import CurrentCutover, next_percent
from gateway.rollout.decisions import AuditEntry
from gateway.rollout.gates import GateResult
from gateway.usage.history import Interval, Resolution, UsageTrend, usage_trend
from gateway.usage.operations import Documented
from gateway.usage.totals import ClientUsage, TopClients, Totals

Part = Mapping[str, Any]

# The maximum seconds that a view waits for the OpenAPI document of a version. A later view can use
# the document when it has been loaded.
_PATIENCE = 0.05
# The number of clients on a page. It is lower than in other tables, since more parts follow below.
_ROWS = 25
# Prefixes that make spreadsheets read a cell as a formula. Some spreadsheets also accept full-width
# signs.
_FORMULA = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
_HEAD = (
    *(
        "client",
        "api",
        "version",
        "operation",
        "count",
        "at_least",
        "refused",
        "rejected",
        "failed",
    ),
    *("first", "last", "served"),
)
# The number of clients that the next step names.
_MOST_NAMED = 3
# The maximum number of lines in a piece of CSV. Creating a piece takes about a millisecond.
MOST_LINES = 100
# The maximum number of differing fields shown for a shadow, and of samples shown for each field.
_MOST_FIELDS, _MOST_SAMPLES = 50, 3
HEIGHT = 28.0
_CHART_HEIGHT = 60.0
DAY = Resolution.DAY.seconds
# The numbers of days before and after today that a chart shows.
_BEFORE, _AFTER = 365, 120
# In the charts of the last 24 hours, each point stands for this number of minutes.
_PART_MINUTES = 10


async def version_page(
    operator: Operator, version: VersionSummary, query: Mapping[str, str]
) -> Part:
    """Return the template values; raises ValueError if `within` is not a valid period."""
    key = version.key
    view, days, minutes, latest = await operator.state.version(key)
    now, span = view.now, span_of(view.now)
    in_force, within = operator.state.in_force, query.get("within") or WITHIN
    operations = await _documented(operator, key)
    missing = uncompared_operations(key, view.totals, operator.rules, operations)
    await asyncio.sleep(0)  # let the event loop serve requests, here and below
    shown = callers(view.totals, key, query)
    await asyncio.sleep(0)
    judged = None
    if key[1]:
        judged = verdict(key, view, operator.rules, in_force, within=within, documented=operations)
    await asyncio.sleep(0)
    has_cutover = key in operator.rules.cutovers
    changes = (await latest_changes(operator.state))[0] if has_cutover else []
    cutover = cutover_part(operator, key, missing, changes)
    facts = operator.rules, view.totals, in_force, now
    clients = view.totals.clients.get(key, TopClients())
    step = next_step(key, *facts, clients.served, _who(clients, now))
    return {
        "key": key,
        "steps": [*steps(key, *facts, moved=0.0 if cutover is None else cutover["since"])],
        "next": step,
        "edit": ()
        if step is None or not step.add
        else await asyncio.to_thread(edit, operator.reloader.content, key, step.add, step.drop),
        "version": version,
        "phase": phase(version, now),
        "now": now,
        "since": view.totals.since,
        "callers": shown,
        "aside": in_force.aside(now),
        "alone": view.replica,
        "verdict": judged,
        "answer": "" if judged is None else ANSWERS[judged.answer].text,
        "within": within,
        "line": [*time_line(version, now, span)],
        "span": span,
        "brownouts": version.upcoming(now),
        "paused": key in in_force.paused,
        "cutover": cutover,
        "shadow": _shadow_part(version, view.totals, missing),
        "trend": await _trend_part(version, days, minutes, now),
        "latest": latest,
    }


def _who(clients: TopClients, now: float) -> str:
    """Return who has used a version in the last 30 days, the busiest clients first."""
    counts = Counter[str]()
    for (_, client), row in clients.rows.items():
        if row.served >= now - 30 * DAY:
            counts[client_text(client)] += row.count
    names = [name for name, _ in counts.most_common(_MOST_NAMED)]
    if not names:
        return "nobody has used it for 30 days"
    more = len(counts) - len(names)
    called = "calls" if len(counts) == 1 else "call"
    return f"{', '.join(names)}{f' and {more:,} more' if more else ''} {called} it"


async def _documented(operator: Operator, key: VersionKey) -> Documented:
    """Return the operations in a version's OpenAPI document; None if it is not loaded yet."""
    finding = asyncio.ensure_future(operator.documented.find(operator.rules, key))
    done, _ = await asyncio.wait([finding], timeout=_PATIENCE)
    return finding.result() if done else None


class _Caller(NamedTuple):
    client: str | None
    operation: str
    usage: ClientUsage


_COLUMNS: Mapping[str, Callable[[_Caller], object]] = {
    "client": lambda each: (each.client is None, (each.client or "").casefold()),
    "operation": lambda each: each.operation,
    "count": lambda each: each.usage.count,
    "refused": lambda each: each.usage.refused,
    "rejected": lambda each: each.usage.rejected,
    "failed": lambda each: each.usage.failed,
    "first": lambda each: each.usage.first,
    "last": lambda each: each.usage.last,
    "served": lambda each: each.usage.served,
}


def callers(
    totals: Totals, key: VersionKey, query: Mapping[str, str], *, size: int = _ROWS
) -> Listing[_Caller]:
    """Return one page of clients; `query` has the parameters `find`, `sort` and `page`."""
    text = query.get("find", "").casefold()
    rows = totals.clients.get(key, TopClients()).rows
    found = [_Caller(client, operation, usage) for (operation, client), usage in rows.items()]

    def fits(each: _Caller) -> bool:
        return text in client_text(each.client).casefold() or text in each.operation.casefold()

    return listing(found, query, _COLUMNS, default="-count", fits=fits if text else None, size=size)


def callers_csv(totals: Totals, key: VersionKey, query: Mapping[str, str]) -> Iterator[bytes]:
    """Yield all clients of a version that match the filter, as CSV (RFC 4180), in pieces."""
    yield _lines([_HEAD])
    rows = totals.clients.get(key, TopClients()).rows
    found = callers(totals, key, {**query, "page": ""}, size=max(len(rows), 1)).rows
    for batch in batches(found, MOST_LINES):
        yield _lines(_cells(each, key) for each in batch)


def _lines(rows: Iterable[Iterable[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def _cells(each: _Caller, key: VersionKey) -> Iterator[str]:
    usage = each.usage
    for text in (client_text(each.client), *key, each.operation):
        yield f"'{text}" if text.startswith(_FORMULA) else text
    yield str(usage.count)
    yield "yes" if usage.slack else "no"
    yield str(usage.refused)
    yield str(usage.rejected)
    yield str(usage.failed)
    for moment in (usage.first, usage.last, usage.served):
        yield format_time(moment) if moment else ""


def cutover_part(
    operator: Operator,
    key: VersionKey,
    uncompared: list[str],
    changes: Sequence[AuditEntry] = (),
) -> Part | None:
    """Return the template values; None without a cutover. `changes` is the audit log.

    A form sends `seen`, the revision of the state. An action is refused if the revision has
    changed.
    """
    if key not in operator.rules.cutovers:
        return None
    current = operator.state.cutover(key)
    report, gates = cutover_report(current, uncompared), current.cutover.gates
    seconds = current.results[0].window if current.results else current.now - current.state.since
    return {
        "report": report,
        "rule": current.cutover,
        "since": current.state.since,
        "seen": current.state.revision,
        "following": next_percent(current.cutover, current.state),
        "steps": [*_rollout(current, changes)],
        "seconds": max(seconds, 1.0),
        "gates": _gate_rows(current, report, operator.curves),
        "curve_seconds": 0.0 if gates is None else curve_seconds(gates),
    }


def _rollout(current: CurrentCutover, changes: Sequence[AuditEntry]) -> Iterator[Part]:
    """Yield the steps of a cutover; `at` is when a step was passed or can begin, or 0."""
    cutover, state, _, _, now = current
    ahead = state.since if next_percent(cutover, state) is not None else 0.0
    of_version = [each for each in changes if each[3:6] == ("cutover", *cutover.key)]
    for percent in cutover.steps or (cutover.percent,):
        at, why, kind = 0.0, "", "current"
        if percent < state.percent:
            kind = "done"
            before = f"{percent:g}%"
            found = next((one for one in of_version[::-1] if one.before.startswith(before)), None)
            at, why = (found.at, found.why) if found else (0.0, "")
        elif percent > state.percent:
            kind, ahead = "ahead", ahead and max(ahead + cutover.every, now)
            at = ahead
        yield {"percent": percent, "kind": kind, "at": at, "why": why}


def _gate_rows(current: CurrentCutover, report: CutoverReport, curves: GateCurves) -> list[Part]:
    known = curves.of(current.cutover.key)
    return [
        _gate_row(gate, result.pressure, known, rolled_back=report.gates_at is not None)
        for gate, result in zip(report.gates, current.results, strict=True)
        if is_shown(gate)
    ]


def _gate_row(
    gate: GateResult,
    used: float | None,
    known: Mapping[GateName, Sequence[GatePoint]],
    *,
    rolled_back: bool,
) -> Part:
    points = list(known.get((gate.gate, gate.measure), ()))
    if rolled_back:  # the results that caused the rollback are newer than the latest point
        points.append(GatePoint(inf, gate.new, gate.old))
    new, old = [point.new for point in points], [point.old for point in points]
    # The limit for a share is added to the old route's share. The limit for a mean multiplies the
    # old route's mean.
    allowed, limit = gate.limit, f"{gate.limit * 100:.3g}%"
    if gate.gate == "latency":
        allowed, limit = gate.limit * (gate.old or 0.0), f"{gate.limit:g} × old"
    elif adds(gate):
        allowed, limit = gate.limit + (gate.old or 0.0), f"{limit} more"
    seen = [value for value in (*new, *old) if value is not None]
    top = top_of([*seen, min(allowed, 3 * max(seen, default=allowed))])
    return {
        "gate": gate,
        "name": gate_name(gate),
        "new": _gate_value(gate.gate, gate.new, gate.new_count, gate.new_requests),
        "old": _gate_value(gate.gate, gate.old, gate.old_count, gate.old_requests),
        "limit": limit,
        "used": None if used is None else min(used, 1.0),
        "new_path": line(new, HEIGHT, top),
        "old_path": line(old, HEIGHT, top),
        "limit_y": None if not 0 < allowed <= top else HEIGHT - HEIGHT * allowed / top,
    }


def _gate_value(kind: str, value: float | None, count: int, requests: int) -> str:
    if value is None:
        return "–"
    if kind == "latency":
        return f"{duration_text(value)} of {requests:,}"
    return share_text(value, count, requests)


def _shadow_part(version: VersionSummary, totals: Totals, uncompared: list[str]) -> Part | None:
    report = shadow_report(totals, version.key, uncompared)
    if version.shadow is None and not (report.compared or report.validated or report.shed):
        return None
    fields = [_differing(each, report, version) for each in report.fields[:_MOST_FIELDS]]
    return {
        "report": report,
        "fields": fields,
        "more": max(len(report.fields) - _MOST_FIELDS, 0),
    }


def _differing(each: FieldReport, report: ShadowReport, version: VersionSummary) -> Part:
    of = report.validated if each.kind == "request" else report.compared
    samples = [sample for sample in report.samples if sample.field == each.field]
    fix = suggest_fix(each.field, report.samples, version.shadow, newer=version.shadowed_by_newer)
    return {
        "report": each,
        "share": min(each.differences / max(of, 1), 1.0),
        "samples": [(one, *marked(one)) for one in samples[-_MOST_SAMPLES:][::-1]],
        "fix": fix,
    }


_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
Marked = list[tuple[str, bool]]
"""The parts of a text, each with whether it differs from the other text."""


def marked(sample: DifferenceSample) -> tuple[Marked, Marked]:
    """Return both values of a sample, with indented JSON and marked differences."""
    old, new = (_TOKEN.findall(_pretty(text)) for text in (sample.old, sample.new))
    parts: tuple[Marked, Marked] = ([], [])
    for kind, *places in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        parts[0].append(("".join(old[places[0] : places[1]]), kind != "equal"))
        parts[1].append(("".join(new[places[2] : places[3]]), kind != "equal"))
    return parts


def _pretty(text: str) -> str:
    try:
        value = json.loads(text) if text[:1] in "[{" else None
    except ValueError:  # it is truncated
        return text
    return json.dumps(value, indent=2, ensure_ascii=False) if value else text


async def _trend_part(
    version: VersionSummary,
    days: Mapping[int, Interval],
    minutes: Mapping[int, Interval],
    now: float,
) -> Part:
    """`nobody` is the day on which the number of clients reaches 0, or None."""
    today = Resolution.DAY.start(now)
    span = TimeLine(today - _BEFORE * DAY, today + _AFTER * DAY)
    counts = _by_day(days, today, lambda each: each.callers.count)
    whole = [value for value in counts[:_BEFORE] if value is not None]
    found = usage_trend(whole)
    nobody = None
    if found is not None and found.days is not None:
        quiet = next((at for at, value in enumerate(reversed(whole)) if value), len(whole))
        nobody = today + (found.days if any(whole[-7:]) else -quiet) * DAY
    return {
        "year": [chart async for chart in turns(_year(days, counts, today, found))],
        "day": await _latest_day(minutes, now),
        "span": span,
        "months": _ticks(span.begin, span.end),
        "hours": _ticks(now - DAY, now),
        "marks": [*time_line(version, now, span)],
        "usage": found,
        "nobody": nobody,
        "weeks": _weeks(days),
    }


def _ticks(begin: float, end: float) -> list[float]:
    """Return the times of five evenly spaced labels of an axis."""
    return [begin + (end - begin) * part / 4 for part in range(5)]


def _by_day(
    days: Mapping[int, Interval], today: int, value: Callable[[Interval], float]
) -> list[float | None]:
    """A day without requests has 0. Days before the first request and future days have None."""
    first = min(days, default=today)
    found: list[float | None] = []
    for at in range(today - _BEFORE * DAY, today + (_AFTER + 1) * DAY, DAY):
        if at < first or at > today:
            found.append(None)
        else:
            found.append(value(days[at]) if at in days else 0.0)
    return found


def _chart(
    title: str,
    latest: str,
    top: float,
    path: str,
    *,
    area: str = "",
    second: str = "",
    ahead: str = "",
) -> Part:
    """`latest` is a text, `top` the value at the upper edge; the other strings are SVG paths."""
    named = {"title": title, "latest": latest, "top": top, "path": path}
    return {**named, "area": area, "second": second, "ahead": ahead}


def _year(
    days: Mapping[int, Interval], counts: list[float | None], today: int, found: UsageTrend | None
) -> Iterator[Part]:
    most = top_of(counts)
    yield _chart(
        "Callers a day",
        f"{counts[_BEFORE] or 0:,.0f} today",
        most,
        line(counts, _CHART_HEIGHT, most),
        area=area(counts, _CHART_HEIGHT, most),
        ahead=_ahead(found, most),
    )
    requests = _by_day(days, today, lambda each: each.requests)
    errors = _by_day(days, today, lambda each: each.errors)
    yield _requests("Requests a day", f"{requests[_BEFORE] or 0:,.0f} today", requests, errors)


def _ahead(found: UsageTrend | None, top: float) -> str:
    """Return the SVG path of the forecast, from today until it reaches 0 or the chart ends."""
    if found is None or not found.days:
        return ""
    days = min(found.days, float(_AFTER))
    left = max(found.level + found.slope * days, 0.0)
    values: list[float | None] = [None] * (_BEFORE + _AFTER + 1)
    for day in range(int(days) + 1):
        values[_BEFORE + day] = found.level + (left - found.level) * day / max(days, 1.0)
    return line(values, _CHART_HEIGHT, top)


async def _latest_day(minutes: Mapping[int, Interval], now: float) -> list[Part]:
    # The current minute is excluded because it is incomplete.
    end = Resolution.MINUTE.start(now) - Resolution.MINUTE.seconds
    count = 24 * 60 // _PART_MINUTES
    parts: list[list[Interval]] = [[] for _ in range(count)]
    async for start, each in turns(minutes.items()):
        place = count - 1 - (end - start) // (60 * _PART_MINUTES)
        if 0 <= place < count:
            parts[place].append(each)
    sums = [Interval.total(Resolution.MINUTE, part) async for part in turns(parts)]
    requests: list[float | None] = [each.requests / _PART_MINUTES for each in sums]
    errors: list[float | None] = [each.errors / _PART_MINUTES for each in sums]
    slow = [each.quantile(0.95) for each in sums]
    longest, mean, latest = top_of(slow), sums[-1].requests / _PART_MINUTES, slow[-1]
    lately = f"in the last {_PART_MINUTES} min"
    return [
        _requests(
            "Requests a minute",
            f"{format(mean, ',.0f' if mean >= 10 else '.2g')} {lately}",
            requests,
            errors,
        ),
        _chart(
            "95% answered within, ms",
            "not known" if latest is None else f"{duration_text(latest)} {lately}",
            longest * 1000,
            line(slow, _CHART_HEIGHT, longest),
        ),
    ]


def _requests(
    title: str, latest: str, requests: Sequence[float | None], errors: Sequence[float | None]
) -> Part:
    top = top_of(requests)
    return _chart(
        title,
        latest,
        top,
        line(requests, _CHART_HEIGHT, top),
        area=area(requests, _CHART_HEIGHT, top),
        second=line(errors, _CHART_HEIGHT, top) if any(errors) else "",
    )


def _weeks(days: Mapping[int, Interval]) -> list[Part]:
    """`requests` and `errors` are sums; `callers` is the highest daily number of clients."""
    found: dict[int, dict[str, int]] = {}
    for start, each in days.items():
        begin = start - (start // DAY + 3) % 7 * DAY  # Monday (1970-01-01 was a Thursday)
        week = found.setdefault(begin, {"begin": begin, "requests": 0, "errors": 0, "callers": 0})
        week["requests"] += each.requests
        week["errors"] += each.errors
        week["callers"] = max(week["callers"], each.callers.count)
    return [found[begin] for begin in sorted(found, reverse=True)]
