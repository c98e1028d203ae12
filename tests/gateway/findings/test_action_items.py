"""Action items: their reasons, remedies and order."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.base.overrides import NO_OVERRIDES, Overrides
from gateway.findings.action_items import (
    DAY,
    ActionItem,
    Situation,
    action_items,
    name_of,
    version_link,
)
from gateway.findings.notifications import FailingWebhook
from gateway.findings.summaries import UsageSummary, version_summaries
from gateway.observe.failing_targets import FailingService, TargetError
from gateway.rollout.cutovers import CurrentCutover, CutoverState, DecidedBy
from gateway.rollout.decisions import AuditEntry
from gateway.rollout.gates import GateEvidence, GateOutcome, GateResult
from gateway.store.state import FleetView, ReplicaView
from gateway.usage.delta import CounterDelta, Delta
from gateway.usage.totals import StateRows, Totals
from tests.gateway.rules.rules import RULES, edited, loaded

NOW = 1_000 * DAY  # 1972-09-27
KEY = ("person", "1")
MOVING = edited("{ service: old }", '{ service: old, cutover: { via: "2", percent: 10 } }')
DRY = MOVING.replace("percent: 10 }", "percent: 10, gates: { errors: 1%, dry_run: true } }")
ENDING = edited("{ service: old }", "{ service: old, lifecycle: { sunset: 1972-10-07 } }")
NEARER = ENDING.replace("1972-10-07", "1972-10-01")
WINDOW = "{ at: '0 9 * * *', minutes: 30 }"
BROWN = edited("{ service: old }", f"{{ service: old, brownout: {{ windows: [{WINDOW}] }} }}")
ALWAYS = edited("{ service: old }", "{ service: old, brownout: { percent: 5 } }")


STEPS = '{ via: "2", steps: [10, 90], gates: { errors: 1%, minimum: 100 } }'
STEPPING = edited("{ service: old }", f"{{ service: old, cutover: {STEPS} }}")
OVER = BROWN.replace("brownout:", "lifecycle: { sunset: 1972-10-07 }, brownout:")
OTHER = AuditEntry(NOW, "bob", "", "cutover", "person", "2", "of another version", "", "")


def failing(targets: int) -> FailingService:
    since = NOW - 60
    return FailingService("s", targets, 1, since, [TargetError("h:1", since, "refused")])


def by_hand(what: str, why: str = "a customer asked") -> AuditEntry:
    return AuditEntry(NOW - 60, "ann", "192.0.2.7", what, *KEY, why, "", "")


def situation(rules: str = RULES, **more: Any) -> Situation:
    snapshot = loaded(rules)
    calm = Situation(
        now=NOW,
        rules=snapshot,
        versions=version_summaries(snapshot),
        summaries={},
        cutovers={},
        retirable=(),
        overrides=NO_OVERRIDES,
        totals=Totals(StateRows()),
        fleet=FleetView([], []),
        refused="",
        replica="a",
    )
    return replace(calm, **more)


def cutover(
    decided_by: DecidedBy = DecidedBy.RULES,
    percent: float = 10.0,
    *results: GateResult,
    since: float = 60,
    rules: str = MOVING,
) -> dict[Any, CurrentCutover]:
    rule = loaded(rules).cutovers[KEY]
    state = CutoverState(percent, decided_by, "errors: too many", NOW - since)
    return {KEY: CurrentCutover(rule, state, GateEvidence(), results, NOW)}


def result(outcome: GateOutcome, new: float | None = 0.01) -> GateResult:
    return GateResult(
        "errors", "5xx", outcome, new, 0.0, 0.01, 1, 100, 0, 100, 300.0, "errors (5xx): 1 of 100"
    )


def replica(presence: str, name: str = "b", refused: str = "") -> ReplicaView:
    return ReplicaView(name, presence, False, "1", "hash", "", NOW - 99, NOW - 60, 60.0, 0, refused)


def violated(days: float) -> Totals:
    totals = Totals(StateRows())
    for field, hours in (("/name", 0), ("/id", 1)):
        counts = [CounterDelta("violations", (*KEY, field), 3)]
        totals.absorb(Delta(NOW - days * DAY - hours * 3600, [], [], counts, [], []))
    return totals


CALLED = {KEY: UsageSummary(callers=1, last=NOW - 60, served=NOW - 60)}
CASES = {
    # situation, urgency, kind, part of the reason
    "not ready": (situation(unready="no worker"), "now", "Not ready", "no requests: no worker"),
    "rules refused": (
        situation(refused="line 3, apis: a mistake (and 1 more)"),
        *("now", "Rules refused", "stays in force: line 3, apis: a mistake (and 1 more)."),
    ),
    "rules refused elsewhere": (
        situation(fleet=FleetView([replica("heard", refused="line 3: a mistake")], [])),
        *("now", "Rules refused", "stays in force: line 3: a mistake."),
    ),
    "the same rules refused everywhere": (
        situation(
            refused="a mistake",
            fleet=FleetView([replica("heard", name, "a mistake") for name in "abc"], []),
        ),
        *("now", "Rules refused", "stays in force: a mistake."),
    ),
    "stale": (
        situation(stale_since=NOW - 60, stale_reason="a.db: the disk is full"),
        *("now", "State is stale", "since 26 Sep 1972, 23:59 UTC: a.db: the disk is full. Req"),
    ),
    "a task": (situation(failing=("state",)), "now", "Task fails", "restarted"),
    "a lost replica": (
        situation(fleet=FleetView([replica("heard"), replica("lost")], [])),
        *("now", "Replica lost", "since 26 Sep 1972, 23:59 UTC"),
    ),
    "a webhook": (
        situation(
            webhooks=[FailingWebhook("pager", NOW - 60, "It has accepted no message since.")]
        ),
        *("now", "Webhook fails", "It has accepted no message since."),
    ),
    "a certificate that expires in three weeks": (
        situation(certificates={"api.pem": NOW + 21 * DAY}),
        *("soon", "Certificate expires", "It expires at"),
    ),
    "a certificate that has expired": (
        situation(certificates={"api.pem": NOW}),
        *("now", "Certificate expired", "It has been expired since"),
    ),
    "a document": (
        situation(documents={"v1.json": "v1.json: cannot be read: is the path right?"}),
        *("soon", "Document unusable", "It cannot be used: v1.json: cannot be read: is the path"),
    ),
    "a service": (
        situation(services=[failing(1)]),
        *(
            "now",
            "Service fails",
            "1 of 1 target fails: h:1 since 26 Sep 1972, 23:59 UTC (refused).",
        ),
    ),
    "a target": (
        situation(services=[failing(2)]),
        *("soon", "Service fails", "1 of 2 targets fails: h:1 since"),
    ),
    "a target of another replica": (
        situation(fleet=FleetView([replica("heard")._replace(failing=[failing(2)])], [])),
        *("soon", "Service fails", "1 of 2 targets fails: h:1 since"),
    ),
    "rules that differ": (
        situation(fleet=FleetView([], ["the rules differ"])),
        *("now", "Fleet", "The rules differ."),
    ),
    "a rollback": (
        situation(MOVING, cutovers=cutover(DecidedBy.ROLLED_BACK, 0)),
        *("now", "Rolled back", "rolled back to 0%: errors: too many."),
    ),
    "a gate exceeded": (
        situation(MOVING, cutovers=cutover(DecidedBy.HELD, 10, result(GateOutcome.EXCEEDED))),
        *("now", "Gate exceeded", "Errors (5xx): 1 of 100."),
    ),
    "a gate exceeded in a dry run": (
        situation(
            DRY, cutovers=cutover(DecidedBy.RULES, 10, result(GateOutcome.EXCEEDED), rules=DRY)
        ),
        *("now", "Gate exceeded", "It stays at 10%: the gates are a dry run."),
    ),
    "held": (
        situation(STEPPING, cutovers=cutover(DecidedBy.HELD, rules=STEPPING, since=10**6)),
        "soon",
        "Held",
        (
            "stays at 10%: errors: too many. Now it is held, and goes to 90% after 100 more"
            " requests on the new route."
        ),
    ),
    "a gate near its limit": (
        situation(MOVING, cutovers=cutover(DecidedBy.RULES, 10, result(GateOutcome.PASSED))),
        *("soon", "Gate near its limit", "Errors (5xx)"),
    ),
    "a sunset": (
        situation(ENDING, summaries=CALLED),
        *("soon", "Sunset is near", "in 10 days, and up to 1 client a day calls it, last on 26"),
    ),
    "a sunset within a week": (
        situation(NEARER, summaries={KEY: UsageSummary(callers=1200, served=NOW)}),
        *("now", "Sunset is near", "in 4 days, and up to 1,200 clients a day"),
    ),
    "a brownout": (
        situation(BROWN),
        *("soon", "Brownout", "will refuse 100% of its requests from 27 Sep 1972, 09:00 UTC for"),
    ),
    "one that is under way": (
        situation(BROWN, now=NOW + 9.1 * 3600),
        *("soon", "Brownout", "refuses 100% of its requests until 27 Sep 1972, 09:30 UTC."),
    ),
    "one without an end": (situation(ALWAYS), "soon", "Brownout", "refuses 5% of its requests w"),
    "one that ends with the version": (
        situation(ALWAYS.replace("brownout:", "lifecycle: { sunset: 1972-12-24 }, brownout:")),
        *("soon", "Brownout", "refuses 5% of its requests until 24 Dec 1972, 00:00 UTC."),
    ),
    "brownouts paused by hand": (
        situation(
            BROWN,
            overrides=Overrides(frozenset({KEY})),
            changes=[by_hand("brownout pause", "of before"), by_hand("brownout pause"), OTHER],
        ),
        "soon",
        "Brownouts paused",
        (
            "They were paused by ann at 26 Sep 1972, 23:59 UTC: a customer asked. Without the"
            " pause, it will refuse 100% of its requests from 27 Sep 1972, 09:00 UTC for 30"
            " minutes."
        ),
    ),
    "brownouts paused long ago": (
        situation(BROWN, overrides=Overrides(frozenset({KEY}))),
        *(
            "soon",
            "Brownouts paused",
            "paused by an operator; the audit log no longer has the name",
        ),
    ),
    "a cutover paused by hand": (
        situation(
            MOVING,
            cutovers=cutover(DecidedBy.OPERATOR, 5),
            changes=[
                by_hand("cutover"),
                by_hand("cutover")._replace(who="gateway", origin=""),
                OTHER,
            ],
        ),
        "soon",
        "Cutover paused",
        (
            "It was set to 5% by ann at 26 Sep 1972, 23:59 UTC: a customer asked. Until it is"
            " cleared, steps and gates do not change it."
        ),
    ),
    "a step that nobody reaches": (
        situation(STEPPING, cutovers=cutover(since=7200, rules=STEPPING)),
        "soon",
        "Step waits",
        "stayed at 10% for 2 hours instead of 10 minutes: it needs 100 more requests on the new",
    ),
    "violations": (
        situation(totals=violated(0.5)),
        *("soon", "Schema violated", "document 6 times, last at 26 Sep 1972, 12:00 UTC in /n"),
    ),
    "one that can go": (situation(retirable=[KEY]), "ready", "Can be retired", "30 days"),
}


def urgent(seen: Situation) -> list[ActionItem]:
    """Return the items except next steps, which `test_next_steps.py` tests."""
    return [item for item in action_items(seen) if item.finding.urgency != "step"]


@pytest.mark.parametrize(("seen", "urgency", "kind", "reason"), CASES.values(), ids=CASES)
def test_each_finding_is_an_action_item(
    seen: Situation, urgency: str, kind: str, reason: str
) -> None:
    (found,) = urgent(seen)
    assert (found.finding.urgency, found.finding.kind) == (urgency, kind)
    assert reason in found.reason
    assert found.finding.action
    assert found.link.startswith("/")


CALM = {
    "nothing": situation(),
    "rules without a gate": situation(MOVING, cutovers=cutover()),
    "a gate that is well": situation(
        MOVING, cutovers=cutover(DecidedBy.RULES, 10, result(GateOutcome.PASSED, 0.001))
    ),
    "a gate that has seen little": situation(
        MOVING, cutovers=cutover(DecidedBy.RULES, 10, result(GateOutcome.INCONCLUSIVE))
    ),
    "a sunset that nobody minds": situation(ENDING, summaries={KEY: UsageSummary()}),
    "a sunset that is far": situation(ENDING, now=NOW - 30 * DAY, summaries=CALLED),
    "a sunset that was": situation(ENDING, now=NOW + 30 * DAY, summaries=CALLED),
    "a pause of no brownouts": situation(overrides=Overrides(frozenset({KEY}))),
    "a pause after the end": situation(
        OVER, overrides=Overrides(frozenset({KEY})), now=NOW + 30 * DAY
    ),
    "a cutover that was set to where it ends": situation(
        MOVING, cutovers=cutover(DecidedBy.OPERATOR, 10)
    ),
    "a step that has lasted its time": situation(
        STEPPING, cutovers=cutover(since=660, rules=STEPPING)
    ),
    "the last step": situation(STEPPING, cutovers=cutover(since=7200, rules=STEPPING, percent=90)),
    "violations of old": situation(totals=violated(2)),
}


@pytest.mark.parametrize("seen", CALM.values(), ids=CALM)
def test_a_situation_without_findings_has_no_action_items(seen: Situation) -> None:
    assert urgent(seen) == []


def test_the_most_urgent_item_comes_first() -> None:
    found = urgent(
        situation(
            BROWN,
            retirable=[KEY],
            fleet=FleetView([], ["the rules differ"]),
            cutovers=cutover(DecidedBy.ROLLED_BACK, 0),
            refused="a mistake",
        )
    )
    kinds = ["Rules refused", "Rolled back", "Fleet", "Brownout", "Can be retired"]
    assert [each.finding.kind for each in found] == kinds


def test_a_brownout_comes_last_among_equally_urgent_items() -> None:
    found = urgent(situation(OVER, summaries=CALLED, totals=violated(0.5)))
    kinds = ["Sunset is near", "Schema violated", "Brownout"]
    assert [each.finding.kind for each in found] == kinds


def test_versions_have_a_display_name_and_a_link() -> None:
    assert name_of(("plain", "")) == "plain"
    assert version_link(("plain", "")) == "/page/versions/plain"
    assert version_link(("a b", "1"), "#cutover") == "/page/versions/a%20b/1#cutover"


def test_version_summaries_list_the_oldest_version_first() -> None:
    lifecycle = "{ lifecycle: { sunset: 1972-01-01 } }"
    text = edited('"2": { service: new }', f'"2": {lifecycle}').partition("    conversions:")[0]
    rules = loaded(f'{text}      "10": {{ service: new }}\n')
    assert list(version_summaries(rules)) == [("person", "1"), ("person", "2"), ("person", "10")]


def test_equally_urgent_items_stay_in_the_order_of_the_configuration() -> None:
    found = urgent(situation(retirable=[("person", "2"), ("person", "10")]))
    assert [each.subject for each in found] == ["person 2", "person 10"]


def test_replicas_with_equal_mistakes_share_one_item() -> None:
    others = [replica("heard", "a", "x"), replica("heard", "b", "x"), replica("heard", "c", "y")]
    fleet = FleetView([*others, replica("lost", "d", "z")], [])
    found = [each for each in urgent(situation(refused="x", fleet=fleet)) if "file" in each.subject]
    assert [(each.subject, each.link) for each in found] == [
        ("The file on disk of a, b", "/page/rules#mistakes"),
        ("The file on disk of c", "/page/audit#replicas"),
    ]
