"""What operators are told of shadows and cutovers: as tables, in words."""

from gateway.admin.cutover_report import CutoverReport, RouteReport
from gateway.admin.cutover_report import cutover_table as cutover_table
from gateway.admin.shadow_report import DifferenceSample, FieldReport, ShadowReport
from gateway.admin.shadow_report import shadow_table as shadow_table
from gateway.core.cutover.cutover_state import DecidedBy

THEN = "2026-11-21T15:13:33Z"


def test_nothing_was_compared() -> None:
    found = ShadowReport("person", "1", 0, 0, {}, [], [])
    assert shadow_table(found) == "person 1: 0 answers compared, 0 differ"


def test_what_differs_and_samples_the_latest_first() -> None:
    fields = [FieldReport("/name", 3, 0, THEN), FieldReport("/id", 0, 12, THEN)]
    samples = [DifferenceSample("/p", "/name", old, '"Bob"') for old in ('"Bo"', '"B"')]
    found = ShadowReport("person", "1", 9, 3, {"load": 2, "queue": 1}, fields, samples)
    assert shadow_table(found).splitlines() == [
        "person 1: 9 answers compared, 3 differ; not compared: 2 load, 1 queue",
        "FIELD  DIFFERENCES  NOISE  LAST",
        "/name            3      0  2026-11-21T15:13:33Z",
        "/id              0     12  2026-11-21T15:13:33Z",
        "SAMPLE  ENDPOINT  CLIENT GOT  WOULD GET",
        '/name   /p        "B"         "Bob"',
        '/name   /p        "Bo"        "Bob"',
    ]


def test_a_cutover() -> None:
    old, new = RouteReport(0, 0, None), RouteReport(60, 1, 1.119)
    found = CutoverReport(
        "person", "1", "2", 0.0, DecidedBy.ROLLED_BACK, "errors", THEN, "stays", old, new, 7, 1
    )
    assert cutover_table(found).splitlines() == [
        "Version 1 of person: 0% goes via 2",
        "  since    2026-11-21T15:13:33Z: errors (rolled back)",
        "  next     stays",
        "  old way  0 requests, 0 failed",
        "  new way  60 requests, 1 failed, 1.119 ms on average",
        "  shadow   7 answers compared, 1 differ",
    ]
    found.state, found.percent = DecidedBy.OPERATOR, 12.5
    head, since, *_ = cutover_table(found).splitlines()
    assert head == "Version 1 of person: 12.5% goes via 2"
    assert since == "  since    2026-11-21T15:13:33Z: errors"
