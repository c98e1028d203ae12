"""HistoryReport: how the requests for a version came over time, as JSON and as a table."""

import msgspec

from gateway.base.overrides import VersionKey
from gateway.findings.formatting import columns, format_time
from gateway.usage.history import HistoryView, Interval


class HistoryLine(msgspec.Struct, frozen=True):
    """A minute or a day with requests for a version.

    Attributes:
        start: when it began, in the format of RFC 3339.
        requests: all of them.
        share: of the requests for all versions of the API, from 0 to 1.
        errors: requests that failed.
        refused: requests that the gateway refused.
        mean_ms: how long requests took on average, in milliseconds.
        p50_ms: within which time half of them ended; None if it is not known.
        p95_ms: likewise, 95%.
        p99_ms: likewise, 99%.
        callers: the number of distinct clients, an estimate where there are many.
    """

    start: str
    requests: int
    share: float
    errors: int
    refused: int
    mean_ms: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    callers: int


class HistoryReport(msgspec.Struct, frozen=True):
    """The history of a version.

    Attributes:
        api: the name of the API.
        version: the label of the version.
        by: `minute` or `day`.
        until: when this was known.
        replica: the replica whose counts alone these are; None for all of them.
        lines: the intervals with requests, the first ones first.
    """

    api: str
    version: str
    by: str
    until: str
    replica: str | None
    lines: list[HistoryLine]


def history_report(view: HistoryView, key: VersionKey) -> HistoryReport:
    """Return the history of a version."""
    all_versions: dict[int, int] = {}
    for (api, _), series in view.series.items():
        for start, interval in series.items():
            if api == key[0]:
                all_versions[start] = all_versions.get(start, 0) + interval.requests
    lines = [
        _line(start, interval, all_versions[start])
        for start, interval in view.series.get(key, {}).items()
    ]
    return HistoryReport(*key, view.query.by, format_time(view.now), view.replica, lines)


def _line(start: int, interval: Interval, of: int) -> HistoryLine:
    requests = interval.requests
    p50, p95, p99 = (_milliseconds(interval.quantile(part)) for part in (0.5, 0.95, 0.99))
    return HistoryLine(
        start=format_time(start),
        requests=requests,
        share=round(requests / of, 4) if of else 0.0,
        errors=interval.errors,
        refused=interval.refused,
        mean_ms=round(interval.seconds * 1000 / requests, 3) if requests else 0.0,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        callers=interval.callers.count,
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def history_table(report: HistoryReport) -> str:
    """Return the history as a table for people."""
    alone = []
    if report.replica is not None:
        alone = [f"These are the counts of the replica {report.replica} alone."]
    if not report.lines:
        nobody = f"Nobody has called version {report.version} of {report.api}."
        return "\n".join((nobody, *alone))
    head = ("START", "REQUESTS", "SHARE", "ERRORS", "REFUSED", "MEAN", "P95", "CALLERS")
    rows = [
        (
            line.start if report.by == "minute" else line.start[:10],
            str(line.requests),
            f"{line.share:.1%}",
            str(line.errors),
            str(line.refused),
            f"{line.mean_ms:.1f} ms",
            "unknown" if line.p95_ms is None else f"{line.p95_ms:.1f} ms",
            str(line.callers),
        )
        for line in report.lines
    ]
    return "\n".join((*columns([head, *rows], range(1, len(head))), *alone))
