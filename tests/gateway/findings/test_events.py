"""Events: when they occur, and that an event has the same id on all replicas."""

import pytest

from gateway.base.mistakes import Issue
from gateway.base.overrides import Overrides
from gateway.findings import events
from gateway.findings.conditions import Finding
from gateway.findings.notifications import Notification, NotifyDocument
from gateway.findings.operator import Operator
from gateway.findings.refused_rules import RefusedRules
from gateway.findings.summaries import UsageSummary, VersionSummary, version_summaries
from gateway.rollout.cutovers import CutoverState, DecidedBy
from gateway.store.state import FailoverRank, FleetView, ReplicaView
from gateway.usage.delta import Delta, UsageDelta
from gateway.usage.history import History, HistoryQuery, Resolution
from tests.gateway.operating import MakeOperator
from tests.gateway.rules.rules import edited, loaded

KEY = ("person", "1")
NAME = "version 1 of person"
DAY = 86_400.0
NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def versions(rules: str) -> dict[tuple[str, str], VersionSummary]:
    return {**version_summaries(loaded(edited("{ service: old }", f"{{ service: old, {rules} }}")))}


def moved(*states: tuple[float, DecidedBy]) -> list[tuple[str, str]]:
    document, found = NotifyDocument(), list[Notification]()
    for at, (percent, by) in enumerate(states):
        state = CutoverState(percent, by, "5xx", NOW)
        found += events.cutover_events(document, {KEY: state}, NOW + at)
    return [(one.kind, one.text) for one in found]


def test_a_step_a_hold_and_a_rollback_of_a_cutover_are_events() -> None:
    rules, held, back = DecidedBy.RULES, DecidedBy.HELD, DecidedBy.ROLLED_BACK
    assert moved(
        (1, rules), (1, rules), (5, rules), (5, held), (5, held), (5, rules), (0, back)
    ) == [
        ("cutover.stepped", "The cutover of version 1 of person went from 1% to 5%."),
        ("cutover.held", "The cutover of version 1 of person is held at 5%: 5xx."),
        ("cutover.rolled_back", "The cutover of version 1 of person was rolled back to 0%: 5xx."),
    ]
    assert moved((1, rules), (50, DecidedBy.OPERATOR), (60, DecidedBy.OPERATOR)) == []
    assert moved((0, back)) == []
    for before in ((100, rules), (0, back), (0, DecidedBy.OPERATOR)):
        assert moved(before, (1, rules)) == []  # a cleared cutover starts again
    assert len(moved((1, held), (5, rules))) == 1


def test_repeated_rollbacks_of_a_cutover_have_different_ids() -> None:
    document, found = NotifyDocument(), list[Notification]()
    for at in range(6):
        by = (DecidedBy.RULES, DecidedBy.ROLLED_BACK)[at % 2]
        state = CutoverState(5.0 * (1 - at % 2), by, "5xx", NOW)
        found += events.cutover_events(document, {KEY: state}, NOW + 60 * at)
    back = [one.id for one in found if one.kind == "cutover.rolled_back"]
    assert len({*back}) == 3


def replica(name: str, presence: str) -> ReplicaView:
    return ReplicaView(name, presence, False, "1", "hash", "", NOW, NOW, 0.0, 0)


def test_a_lost_replica_is_an_event() -> None:
    fleet = FleetView([replica("a", "heard"), replica("b", "lost")], [])
    (lost,) = events.replicas_lost(fleet)
    assert (lost.kind, lost.subject) == ("replica.lost", "b")
    assert "has sent no heartbeat since" in lost.text


FIRST = FailoverRank(0, 0)


def test_an_unreachable_store_is_an_event_with_one_id_for_each_outage() -> None:
    assert [*events.state_stale("a", None, NOW, FIRST)] == []
    assert [*events.state_stale("a", NOW, NOW + 29, FIRST)] == []
    (one,) = events.state_stale("a", NOW, NOW + 30, FIRST)
    (later,) = events.state_stale("a", NOW, NOW + 600, FIRST)
    assert one == later
    # The leader may be lost, too. Other replicas report the event later, with the same id.
    assert [*events.state_stale("b", NOW + 1, NOW + 300, FailoverRank(1, 0))] == []
    (other,) = events.state_stale("b", NOW + 1, NOW + 301, FailoverRank(2, 0))
    assert other.id == one.id
    (next_time,) = events.state_stale("a", NOW + 3600, NOW + 3630, FIRST)
    assert next_time.id != one.id
    # In a fleet, all replicas know the term of the leader. The next outage has another term.
    (first,) = events.state_stale("a", NOW + 3599, NOW + 3700, FailoverRank(0, 7))
    (other,) = events.state_stale("b", NOW + 3601, NOW + 3901, FailoverRank(1, 7))
    assert first.id == other.id
    (again,) = events.state_stale("a", NOW + 3700, NOW + 3800, FailoverRank(0, 8))
    (years_later,) = events.state_stale("a", NOW + 1e8, NOW + 2e8, FailoverRank(0, 7))
    assert len({first.id, again.id, years_later.id}) == 3
    assert (one.kind, one.subject) == ("state.stale", "the state")
    assert "has been unreachable since 15 Jan 2027, 08:00 UTC (seen by a)" in one.text


def test_a_refused_configuration_has_the_same_event_id_on_all_replicas(
    operating: MakeOperator,
) -> None:
    def found(name: str, *issues: Issue) -> list[Notification]:
        operator = operating("")
        operator.state.replica = name
        if issues:
            operator.reloader.refused = RefusedRules(b"the same text", issues, 1.0)
        return [*events.own_events(operator, NOW)]

    assert found("a") == []
    unknown, missing = Issue(1, 1, "apis", "unknown key"), Issue(2, 1, "", "missing")
    (one,), (same,) = found("a", unknown), found("b", unknown, missing)
    assert one.id == same.id
    assert one.text.endswith("(seen by a): line 1, apis: unknown key.")
    assert same.text.endswith("(seen by b): line 1, apis: unknown key (and 1 more).")
    (one,) = found("a", Issue(3, 1, "via", "no version is called '33'; did you mean '3'?"))
    assert one.text.endswith("did you mean '3'?")


def test_a_failed_task_is_an_event_once_an_hour(
    operating: MakeOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operating("")
    monkeypatch.setattr(Operator, "failing_tasks", lambda _: ["state"])
    first, later, next_hour = (
        [one.id for one in events.own_events(operator, NOW + seconds)] for seconds in (0, 60, 3600)
    )
    assert first == later != next_hour


@pytest.mark.parametrize(
    ("days", "callers", "stage"),
    [
        (31, 5, None),
        (30, 5, "30"),
        (8, 5, "30"),
        (7, 1, "7"),
        (0.5, 5, "1"),
        (5, 0, None),
        (-1, 5, None),
    ],
)
def test_a_version_with_clients_causes_three_events_before_its_sunset(
    days: float, callers: int, stage: str | None
) -> None:
    found = versions("lifecycle: { sunset: 2027-01-15T08:00:00Z }")
    now = NOW - days * DAY
    summaries = {KEY: UsageSummary(callers=callers, served=now - (29 if callers else 31) * DAY)}
    near = [*events.version_events(found, summaries, (), now)]
    ids = [events.event(Finding.SUNSET_NEAR, NAME, f"{NOW:.0f} {stage}", "").id] if stage else []
    assert [one.id for one in near] == ids
    for one in near:
        assert ("up to 1 client a day calls it" in one.text) is (callers == 1)
    assert [*events.version_events(found, {}, (), NOW - DAY)] == []


def test_a_retirable_version_is_one_event_until_it_serves_a_request_again() -> None:
    def found(served: float) -> Notification:
        usage = {KEY: UsageSummary(served=served)} if served else {}
        (one,) = events.version_events({}, usage, [KEY], NOW)
        return one

    assert found(NOW).text.startswith("Version 1 of person can be retired")
    assert found(NOW).id == found(NOW).id != found(NOW + 40 * DAY).id != found(0).id


WINDOW = "brownout: { windows: [{ from: 2027-01-15T08:00:00Z, to: 2027-01-15T09:00:00Z }] }"


def test_the_beginning_of_a_brownout_is_one_event() -> None:
    found, document, none = versions(WINDOW), NotifyDocument(), Overrides()

    def begun(now: float, overrides: Overrides = none) -> list[Notification]:
        return [*events.brownout_begins(document, found, overrides, now)]

    assert begun(NOW - 1) == begun(NOW, Overrides(frozenset({KEY}))) == []
    (one,) = begun(NOW + 1)
    assert "refuses 100% of its requests until" in one.text
    assert begun(NOW + 2) == []
    assert document.brownouts == [(KEY, (NOW, NOW + 3600, 100))]
    assert begun(NOW + 3600) == []
    assert document.brownouts == []


def test_a_brownout_without_an_end_has_no_end_event() -> None:
    document = NotifyDocument()
    found = versions("brownout: { percent: 5 }")
    (one,) = events.brownout_begins(document, found, Overrides(), NOW)
    assert one.text.endswith("it refuses 5% of its requests.")
    assert document.brownouts[0][1][1] > 1e11
    over = versions("lifecycle: { sunset: 2020-01-01 }, brownout: { percent: 5 }")
    assert [*events.brownout_begins(NotifyDocument(), over, Overrides(), NOW)] == []


def test_a_brownout_ends_at_the_sunset_of_its_version() -> None:
    """A brownout without a configured beginning begins with the first check that finds it."""
    document, none = NotifyDocument(), Overrides()
    found = versions("lifecycle: { sunset: 2027-01-18 }, brownout: { percent: 5 }")
    (one,) = events.brownout_begins(document, found, none, NOW)
    assert one.text.endswith("it refuses 5% of its requests until 18 Jan 2027, 00:00 UTC.")
    ends = NOW + 2 * DAY + 16 * 3600
    assert document.brownouts == [(KEY, (NOW, ends, 5))]
    assert events.brownout_ended(KEY, NOW, ends, {}).text == (
        "The brownout of version 1 of person has ended after 2 days."
    )
    assert [*events.brownout_begins(document, found, none, ends)] == []


def test_the_event_for_the_end_of_a_brownout_has_refused_requests_and_clients() -> None:
    history = History()
    for minute, clients, refused in ((-15, "abc", 0), (-5, "abcd", 0), (3, "ab", 1), (12, "a", 0)):
        usages = [UsageDelta(*KEY, "/p", client, 2, refused, 0, 1) for client in clients]
        history.absorb(Delta(NOW + 60 * minute, usages, [], [], [], []))
    minutes = history.view(HistoryQuery(Resolution.MINUTE), NOW + 1200).series[KEY]
    ended = events.brownout_ended(KEY, NOW, NOW + 600, minutes)
    assert ended.text == (
        "The brownout of version 1 of person has ended after 10 minutes: 2 of 4 requests were"
        " refused, of 2 callers; 4 called in as long before it."
    )
    assert (ended.api, ended.version) == KEY
