"""What a shadow found of a version, out of the totals."""

from gateway.admin.shadow_report import DifferenceSample, FieldReport, shadow_report
from tests.gateway.admin.totals import DIFFERENCE, KEY, totals

THEN = "1970-01-01T00:00:10Z"


def test_what_was_found() -> None:
    found = shadow_report(totals(), KEY)
    assert (found.api, found.version) == KEY
    assert (found.compared, found.differing, found.shed) == (9, 3, {"load": 2})
    assert found.fields == [FieldReport("/name", 3, 1, THEN), FieldReport("/id", 0, 12, THEN)]
    assert found.samples == [DifferenceSample(**DIFFERENCE)]


def test_nothing_is_found_of_another_version_or_once_it_is_forgotten() -> None:
    assert shadow_report(totals(), ("person", "2")).fields == []
    forgotten = totals()
    forgotten.reset_shadow(KEY)
    found = shadow_report(forgotten, KEY)
    assert (found.compared, found.fields, found.samples, found.shed) == (0, [], [], {})
