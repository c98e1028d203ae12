"""The history of a version as a report and as a text table."""

from gateway.admin.reports import HistoryLine, history_report, history_table
from gateway.usage.delta import BOUNDS, Delta, TrafficDelta, UsageDelta
from gateway.usage.history import History, HistoryQuery, Resolution

KEY = ("person", "1")
NONE = [0] * (len(BOUNDS) + 1)


def history() -> History:
    found = History()
    for day, version, count in ((0, "1", 3), (1, "1", 4), (1, "2", 12)):
        usage = UsageDelta("person", version, "/p", "acme", count, 1, 2, 0)
        traffic = TrafficDelta(
            "person", version, "/p", "GET", 200, "", [count, *NONE[1:]], 0.002 * count, 0
        )
        found.absorb(Delta(86_400.0 * day, [usage], [traffic], [], [], []))
    return found


def test_a_report_by_day_has_a_line_for_each_day_with_requests() -> None:
    view = history().view(HistoryQuery(Resolution.DAY, "person"), 100_000.0, "a")
    report = history_report(view, KEY)
    assert (report.api, report.version, report.by, report.replica) == (*KEY, "day", "a")
    assert report.until == "1970-01-02T03:46:40Z"
    first = HistoryLine("1970-01-01T00:00:00Z", 3, 1.0, 2, 1, 2.0, 2.5, 4.75, 4.95, 1)
    second = HistoryLine("1970-01-02T00:00:00Z", 4, 0.25, 2, 1, 2.0, 2.5, 4.75, 4.95, 1)
    assert report.lines == [first, second]
    assert history_table(report) == (
        "START       REQUESTS   SHARE  ERRORS  REFUSED    MEAN     P95  CALLERS\n"
        "1970-01-01         3  100.0%       2        1  2.0 ms  4.8 ms        1\n"
        "1970-01-02         4   25.0%       2        1  2.0 ms  4.8 ms        1\n"
        "These are the counts of replica a only."
    )


def test_a_report_by_minute_has_the_time_of_each_line() -> None:
    view = history().view(HistoryQuery(Resolution.MINUTE), 86_400.0)
    (line,) = history_report(view, KEY).lines[1:]
    assert line.start == "1970-01-02T00:00:00Z"
    assert "1970-01-02T00:00:00Z" in history_table(history_report(view, KEY))


def test_the_table_of_a_version_without_requests_is_one_sentence() -> None:
    view = history().view(HistoryQuery(Resolution.DAY), 86_400.0)
    report = history_report(view, ("person", "3"))
    assert history_table(report) == "No client has called version 3 of person."
