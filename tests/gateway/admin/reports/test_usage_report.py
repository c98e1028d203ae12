"""The usage report: its order, its JSON and its text table."""

import msgspec
import pytest

from gateway.admin import reports
from gateway.admin.reports import UsageReport, usage, usage_json, usage_table
from gateway.base.overrides import VersionKey
from gateway.store.state import DataGap, StateUnreachableError, StateView
from gateway.usage.totals import Totals
from tests.gateway.admin.totals import totals

THEN = "1970-01-01T00:00:10Z"


def viewed(found: Totals, replica: str | None = None, *doubts: DataGap) -> StateView:
    return StateView(found, 20.0, 20.0, replica, doubts)


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
def test_the_clients_of_a_version_are_sorted_by_requests(
    api: str | None, version: str | None, expected: list[str]
) -> None:
    assert [line.client for line in usage(viewed(totals()), api, version).usage] == expected


@pytest.mark.parametrize("most", [1, 2, 9])
async def test_the_json_report_reads_one_version_at_a_time(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of a version are read just before they are sent, and may be deleted by then."""
    monkeypatch.setattr(reports, "MOST_LINES", most)
    read = list[VersionKey]()

    async def one(key: VersionKey) -> StateView:
        read.append(key)
        found = totals()
        if key == ("gone", "1"):
            found.clients.clear()
        return viewed(found, "a")

    for version in (None, "2", "3"):
        view = viewed(totals(), "a", DataGap("b", 10.0))
        few = totals()
        few.clients_of("gone", "1")
        for known in few.clients.values():
            known.rows = {}
        brief = view._replace(totals=few)
        pieces = [each async for each in usage_json(brief, one, version=version)]
        report = msgspec.json.decode(b"".join(pieces), type=UsageReport)
        assert report == usage(view, version=version)
        assert max(piece.count(b'"client"') for piece in pieces) <= most
    assert read == [("gone", "1"), ("person", "1"), ("person", "2"), ("person", "2")]


async def test_the_json_report_fails_if_the_store_becomes_unreachable() -> None:
    async def one(key: VersionKey) -> StateView:
        return viewed(totals(), None if key == ("person", "1") else "a", DataGap(None, 1.0))

    pieces = usage_json(viewed(totals()), one)
    assert (await anext(pieces)).endswith(b'"usage":[')
    assert (await anext(pieces)).count(b'"client"') == 2
    with pytest.raises(StateUnreachableError, match="the store was lost while usage was read"):
        await anext(pieces)


def test_the_table_has_a_row_for_each_client_and_operation() -> None:
    assert [
        " ".join(line.split()) for line in usage_table(usage(viewed(totals()))).splitlines()
    ] == [
        "CLIENT API VERSION OPERATION COUNT REFUSED REJECTED FAILED FIRST LAST SERVED",
        f"(anonymous) person 1 /p 7 0 0 0 {THEN} {THEN} {THEN}",
        f"acme person 1 /p 5 1 0 2 {THEN} {THEN} {THEN}",
        f"late person 2 /p 3 3 0 0 {THEN} {THEN} never",
        "Counted since 1970-01-01T00:00:05Z.",
    ]


def test_a_count_that_may_be_too_low_has_a_plus_sign() -> None:
    found = totals()
    found.clients["person", "2"].rows["/p", "late"].slack = 4
    assert " 3+ " in usage_table(usage(viewed(found), version="2"))


def test_the_table_without_usage_is_one_sentence() -> None:
    assert usage_table(UsageReport("then", [])) == "Nobody has called since then."


def test_missing_data_is_listed_below_the_table() -> None:
    doubts = (DataGap("b", 10.0), DataGap(None, 10.0))
    lines = usage_table(usage(viewed(totals(), "a", *doubts))).splitlines()
    assert lines[-3:] == [
        "These are the counts of replica a only.",
        f"The replica b has sent no heartbeat since {THEN}.",
        f"The database has been unreachable since {THEN}.",
    ]
    nobody = usage_table(usage(viewed(totals(), None, doubts[0]), "users")).splitlines()
    assert len(nobody) == 2
