"""The Versions view: the usage and the lifecycle of all versions of all APIs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, cast

from gateway.admin.page.charts import Mark, TimeLine, line, top_of
from gateway.admin.page.listing import Listing, listing
from gateway.base.overrides import Overrides, VersionKey
from gateway.findings.action_items import DAY, version_link
from gateway.findings.formatting import day_text
from gateway.findings.summaries import UsageSummary, VersionSummary
from gateway.http.cooperative import turns
from gateway.rollout.cutover import percent_in_force

# The numbers of days before and after now that the time line shows.
_BEFORE, _AFTER = 90, 270
# The height of the chart of requests in a row.
_SPARK = 20.0


def span_of(now: float) -> TimeLine:
    return TimeLine(now - _BEFORE * DAY, now + _AFTER * DAY)


PHASES = ("current", "deprecated", "ending", "ended")


def phase(version: VersionSummary, now: float) -> str:
    terms = version.terms
    if terms is None:
        return "current"
    if terms.sunset <= now:
        return "ended"
    if terms.sunset < inf:
        return "ending"
    return "deprecated" if terms.deprecated is not None and terms.deprecated <= now else "current"


async def versions_table(
    versions: Mapping[VersionKey, VersionSummary],
    summaries: Mapping[VersionKey, UsageSummary],
    overrides: Overrides,
    now: float,
    query: Mapping[str, str],
) -> Listing[Mapping[str, Any]]:
    """Return one page; `query` has the parameters `find`, `phase`, `sort` and `page`."""
    order = {key: index for index, key in enumerate(versions)}
    sums: dict[str, int] = {}
    for (api, _), summary in summaries.items():
        sums[api] = sums.get(api, 0) + summary.requests
    wanted, text = query.get("phase", ""), query.get("find", "").casefold()

    def used(version: VersionSummary) -> UsageSummary:
        return summaries.get(version.key, _UNUSED)

    found = listing(
        list(versions.values()),
        query,
        {
            "version": lambda each: order[each.key],
            "phase": lambda each: PHASES.index(phase(each, now)),
            "share": lambda each: used(each).requests / max(sums.get(each.key[0], 0), 1),
            "requests": lambda each: used(each).requests,
            "errors": lambda each: used(each).failed / max(used(each).requests, 1),
            "latency": lambda each: used(each).quick or 0.0,
            "callers": lambda each: used(each).callers,
            "last": lambda each: used(each).last,
        },
        default="version",
        fits=lambda each: (
            text in " ".join((*each.key, *each.services)).casefold()
            and wanted in ("", phase(each, now))
        ),
    )
    span = span_of(now)

    def row(version: VersionSummary) -> Mapping[str, Any]:
        summary, of_api = used(version), sums.get(version.key[0], 0)
        requests, trend = summary.requests, summary.trend
        marks = tuple(time_line(version, now, span))
        return {
            "key": version.key,
            "version": version,
            "summary": summary,
            "phase": phase(version, now),
            "share": requests / of_api if of_api else None,
            "errors": summary.failed / requests if requests else None,
            "spark": line(trend, _SPARK, top_of(trend)) if requests else "",
            "percent": None
            if version.cutover is None
            else percent_in_force(version.cutover, overrides),
            "link": version_link(version.key),
            "marks": marks,
            "story": story(marks),
        }

    rows = [row(each) async for each in turns(found.rows)]
    return replace(cast(Listing[Any], found), rows=rows)


_UNUSED = UsageSummary()


def story(marks: Iterable[Mark]) -> str:
    texts = {mark.kind: mark.text for mark in marks}
    return texts.get("over") or texts.get("notice") or "no end is announced"


def time_line(version: VersionSummary, now: float, span: TimeLine) -> Iterator[Mark]:
    terms = version.terms
    end = span.end if terms is None else min(terms.sunset, span.end)
    if terms is not None and terms.deprecated is not None and terms.deprecated < end:
        text = f"deprecated from {day_text(terms.deprecated)}"
        yield span.mark("notice", text, terms.deprecated, end)
    for window in () if version.brownout is None else version.brownout.windows:
        begins, ends = max(window.begins, span.begin), min(window.ends, end)
        if begins < ends:
            text = f"brownouts until {day_text(ends)}"
            yield span.mark("brownout", text, begins, ends)
    if terms is not None and terms.sunset < inf:
        text = f"{'ended' if terms.sunset <= now else 'ends'} {day_text(terms.sunset)}"
        yield span.mark("over", text, min(terms.sunset, span.end), span.end)
