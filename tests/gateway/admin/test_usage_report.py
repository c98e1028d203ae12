"""Who called what: rows in order, and as a table."""

import pytest

from gateway.admin.usage_report import UsageReport, usage, usage_table
from tests.gateway.admin.totals import totals

THEN = "1970-01-01T00:00:10Z"


@pytest.mark.parametrize(
    ("api", "version", "expected"),
    [
        (None, None, ["", "acme", "late"]),
        ("person", None, ["", "acme", "late"]),
        ("person", "1", ["", "acme"]),
        (None, "2", ["late"]),
        ("users", None, []),
    ],
)
def test_the_busiest_come_first(api: str | None, version: str | None, expected: list[str]) -> None:
    assert [line.client for line in usage(totals(), api, version).usage] == expected


def test_the_table() -> None:
    assert [" ".join(line.split()) for line in usage_table(usage(totals())).splitlines()] == [
        "CLIENT API VERSION ENDPOINT COUNT REFUSED FAILED FIRST LAST SERVED",
        f"(anonymous) person 1 /p 7 0 0 {THEN} {THEN} {THEN}",
        f"acme person 1 /p 5 1 2 {THEN} {THEN} {THEN}",
        f"late person 2 /p 3 3 0 {THEN} {THEN} never",
        "Counted since 1970-01-01T00:00:05Z.",
    ]


def test_a_count_that_may_be_too_low_has_a_plus_sign() -> None:
    found = totals()
    found.clients["person", "2"].rows["/p", "late"].slack = 4
    assert " 3+ " in usage_table(usage(found, version="2"))


def test_nobody() -> None:
    assert usage_table(UsageReport("then", [])) == "Nobody has called since then."
