"""The view Versions: how all versions of all APIs are used, and when they end."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from gateway.admin.page.charts import Mark, TimeLine, line, top_of
from gateway.admin.page.listing import Listing, listing
from gateway.base.overrides import Overrides, VersionKey
from gateway.findings.action_items import DAY, version_link
from gateway.findings.formatting import day_text
from gateway.findings.usage_summary import UsageSummary
from gateway.findings.version_summary import VersionSummary
from gateway.http.turns.cooperation import turns
from gateway.rollout.cutover import in_force

# The time line shows so many days before and after now.
_BEFORE, _AFTER = 90, 270
# The height of the line of requests.
_SPARK = 20.0


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version in the table.

    Attributes:
        version: its summary.
        summary: how it is used.
        phase: where it is in its life: `current`, `deprecated`, `ending` or `ended`.
        share: of the requests of its API, from 0 to 1; None if it had none.
        errors: the share of its requests that failed; None if there were none.
        spark: the line of its requests a day, as an SVG path.
        percent: what its cutover stands at; None without one.
        link: the address of its view.
        marks: its notice, brownouts and end on the time line.
        story: the most important of it in words.
    """

    version: VersionSummary
    summary: UsageSummary
    phase: str
    share: float | None
    errors: float | None
    spark: str
    percent: float | None
    link: str
    marks: tuple[Mark, ...]
    story: str

    @property
    def key(self) -> VersionKey:
        """The API and the label."""
        return self.version.key


def span_of(now: float) -> TimeLine:
    """Return the part of time that is shown of versions."""
    return TimeLine(now - _BEFORE * DAY, now + _AFTER * DAY)


PHASES = ("current", "deprecated", "ending", "ended")


def phase(version: VersionSummary, now: float) -> str:
    """Return where a version is in its life."""
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
) -> Listing[VersionRow]:
    """Return one page of the versions.

    Args:
        versions: the summary of each version.
        summaries: how each is used.
        overrides: those in force.
        now: in seconds since 1970.
        query: the parameters of the address: `find`, `phase`, `sort`, `page`.
    """
    order = {key: index for index, key in enumerate(versions)}
    sums: dict[str, int] = {}
    for (api, _), summary in summaries.items():
        sums[api] = sums.get(api, 0) + summary.requests
    wanted, text = query.get("phase", ""), query.get("find", "").casefold()

    def used(version: VersionSummary) -> UsageSummary:
        return summaries.get(version.key, _UNUSED)

    def share(version: VersionSummary) -> float:
        return used(version).requests / max(sums.get(version.key[0], 0), 1)

    found = listing(
        list(versions.values()),
        query,
        {
            "version": lambda each: order[each.key],
            "phase": lambda each: PHASES.index(phase(each, now)),
            "share": share,
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
    rows = [
        _row(each, used(each), sums.get(each.key[0], 0), overrides, now, span)
        async for each in turns(found.rows)
    ]
    return Listing(
        rows,
        found.total,
        found.matching,
        found.page,
        found.pages,
        found.sort,
        found.descending,
        found.query,
    )


_UNUSED = UsageSummary()


def _row(
    version: VersionSummary,
    summary: UsageSummary,
    of_api: int,
    overrides: Overrides,
    now: float,
    span: TimeLine,
) -> VersionRow:
    requests = summary.requests
    marks = tuple(time_line(version, now, span))
    return VersionRow(
        version=version,
        summary=summary,
        phase=phase(version, now),
        share=requests / of_api if of_api else None,
        errors=summary.failed / requests if requests else None,
        spark=line(summary.trend, _SPARK, top_of(summary.trend)) if requests else "",
        percent=None if version.cutover is None else in_force(version.cutover, overrides),
        link=version_link(version.key),
        marks=marks,
        story=story(marks),
    )


def story(marks: Iterable[Mark]) -> str:
    """Return the end of a version, or else its notice, as a few words."""
    texts = {mark.kind: mark.text for mark in marks}
    return texts.get("over") or texts.get("notice") or "no end is announced"


def time_line(version: VersionSummary, now: float, span: TimeLine) -> Iterator[Mark]:
    """Yield the notice, the brownouts and the end of a version on a time line."""
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
