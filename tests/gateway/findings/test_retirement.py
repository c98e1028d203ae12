"""The verdict on whether a version can be retired, with each of its reasons."""

import pytest

from gateway.base.overrides import NO_OVERRIDES, Overrides, SetAside
from gateway.findings.retirement import Reason, Verdict, sentence, verdict
from gateway.store.state import DataGap, StateView
from gateway.usage.delta import CounterDelta, Delta, UsageDelta
from gateway.usage.operations import DocumentedOperation
from gateway.usage.totals import StateRows, Totals
from tests.gateway.rules.rules import RULES, edited, loaded

DAY = 86_400.0
NOW = 1_000 * DAY
SERVED = ("person", "1")


def totals(
    *calls: tuple[str, float], counts: tuple[CounterDelta, ...] = (), since: float = 1
) -> Totals:
    """Return totals with requests of clients on given days.

    Args:
        calls: client and day; a client name with `!` at the end was refused.
        since: the day when counting began.
    """
    made = Totals(StateRows(documents={"since": since * DAY}))
    for client, day in calls:
        name, refused = client.removesuffix("!"), client.endswith("!")
        usage = UsageDelta(*SERVED, "/p", name, 1, refused, 0, not refused)
        made.absorb(Delta(day * DAY, [usage], [], [], [], []))
    made.absorb(Delta(NOW - DAY, [], [], list(counts), [], []))
    return made


def judged(
    counted: Totals,
    rules: str = RULES,
    overrides: Overrides = NO_OVERRIDES,
    within: str = "30d",
    doubts: tuple[DataGap, ...] = (),
    until: float = NOW,
    replica: str | None = None,
) -> Verdict:
    view = StateView(counted, NOW, until, replica, doubts)
    return verdict(SERVED, view, loaded(rules), overrides, within=within)


def said(found: Verdict, answer: str) -> list[str]:
    return [reason.text for reason in found.reasons if reason.answer == answer]


def test_a_version_without_callers_can_be_retired() -> None:
    found = judged(totals(("acme", 900)))
    assert found.answer == "yes"
    assert said(found, "yes") == ["nobody has called it in the last 30 days"]


def test_the_period_ends_at_the_time_until_which_all_requests_are_counted() -> None:
    """Counts of the last second of a replica may be missing."""
    called = totals(("acme", 999), since=900)
    assert judged(called, within="1d").answer == "no"
    assert judged(called, within="23h").answer == "yes"
    assert judged(called, within="23h", until=NOW - DAY / 24).answer == "no"
    # Counting must have begun before the period, which ends where counts become incomplete.
    begun = totals(since=999)
    assert judged(begun, within="1d").answer == "yes"
    found = judged(begun, within="1d", until=NOW - 2)
    assert found.answer == "unknown"
    assert any("1972-09-27T00:00:02Z" in each.remedy for each in found.reasons)


def test_callers_within_the_period_prevent_retirement() -> None:
    found = judged(totals(("acme", 980), ("", 990.5), ("old", 900)))
    assert found.answer == "no"
    assert said(found, "no") == [
        (
            "2 clients called it in the last 30 days: (anonymous) at 1972-09-17T12:00:00Z,"
            " acme at 1972-09-07T00:00:00Z"
        )
    ]
    assert judged(totals(("acme", 980)), within="10d").answer == "yes"


def test_the_remedy_for_anonymous_clients_is_to_identify_them() -> None:
    called = totals(("", 990), ("!", 991))
    unnamed = "configure 'clients' to see their names"
    silent = (
        "they sent no name that 'clients' in the configuration reads; ask them to"
        " send it, or add a source that contains their name"
    )
    named = f"clients: {{ by: [ {{ header: X }} ] }}\n{RULES}"
    for rules, remedy in ((RULES, unnamed), (named, silent)):
        assert judged(called, rules).reasons[0].remedy == remedy


def test_clients_after_the_first_five_are_only_counted() -> None:
    (text,) = said(judged(totals(*((f"c{day}", day) for day in range(980, 990)))), "no")
    assert text.startswith("10 clients called it")
    assert text.endswith("and 5 more")


OVER = edited(
    "{ service: old }",
    "{ service: old, lifecycle: { sunset: 1972-09-01, deprecated: 1972-01-01 } }",
)


def test_refused_callers_prevent_retirement_before_the_sunset() -> None:
    found = judged(totals(("acme!", 980), ("acme!", 990)))
    assert found.answer == "no"
    assert said(found, "no") == [
        (
            "1 client called it in the last 30 days and got only refusals or failures:"
            " acme at 1972-09-17T00:00:00Z"
        )
    ]
    assert said(found, "yes") == []


def test_refused_callers_are_a_note_after_the_sunset() -> None:
    found = judged(totals(("acme!", 980), ("", 800)), OVER)
    assert found.answer == "yes"
    assert said(found, "yes")[0] == "it served no request in the last 30 days"
    assert (
        "1 client called it in the last 30 days and got only refusals or failures"
        in said(found, "note")[0]
    )


def test_a_caller_served_and_then_refused_counts_as_served() -> None:
    found = judged(totals(("acme", 980), ("acme!", 990), ("x!", 991)), OVER)
    assert found.answer == "no"
    assert said(found, "no") == [
        "1 client called it in the last 30 days: acme at 1972-09-07T00:00:00Z"
    ]
    assert "x at" in said(found, "note")[0]
    early = judged(totals(("x!", 996), since=995), OVER)
    assert early.answer == "unknown"
    assert said(early, "unknown")[0].startswith("it served no request since counting began")


def rejecting(*clients: str) -> Totals:
    made = Totals(StateRows(documents={"since": 1}))
    usages = [UsageDelta(*SERVED, "/p", client, 2, 0, 0, 0, 2) for client in clients]
    made.absorb(Delta(990 * DAY, usages))
    return made


def test_clients_whose_requests_were_all_rejected_do_not_prevent_retirement() -> None:
    found = judged(rejecting("scanner"))
    assert found.answer == "yes"
    assert said(found, "yes") == ["it served no request in the last 30 days"]
    assert said(found, "note")[0] == (
        "1 client called it in the last 30 days, and no request was accepted (401, 403, 404, 405):"
        " scanner at 1972-09-17T00:00:00Z"
    )
    # Failures and refusals beside rejected requests do not show a use either.
    counted = rejecting("scanner", "acme")
    counted.absorb(Delta(991 * DAY, [UsageDelta(*SERVED, "/p", "scanner", 1, 0, 1, 0)]))
    assert judged(counted).answer == "yes"
    counted.absorb(Delta(991 * DAY, [UsageDelta(*SERVED, "/q", "acme", 1, 0, 0, 1)]))
    assert said(judged(counted), "no") == [
        "1 client called it in the last 30 days: acme at 1972-09-18T00:00:00Z"
    ]


def test_a_client_that_only_failed_prevents_retirement_before_the_sunset() -> None:
    counted = Totals(StateRows(documents={"since": 1}))
    counted.absorb(Delta(990 * DAY, [UsageDelta(*SERVED, "/p", "acme", 1, 0, 1, 0)]))
    assert judged(counted).answer == "no"
    assert judged(counted, OVER).answer == "yes"


def test_a_client_that_is_set_aside_does_not_count_until_the_date() -> None:
    called = totals(("acme", 990), ("", 991))
    aside = {name: SetAside(NOW + DAY, "a check") for name in ("acme", "", "silent")}
    found = judged(called, overrides=Overrides(set_aside=aside))
    assert found.answer == "yes"
    assert said(found, "yes") == ["no other client has called it in the last 30 days"]
    assert said(found, "note")[0] == (
        "2 clients that called it in the last 30 days are set aside:"
        " (anonymous) until 1972-09-28T00:00:00Z (a check),"
        " acme until 1972-09-28T00:00:00Z (a check)"
    )
    over = {name: SetAside(NOW, "a check") for name in aside}
    assert judged(called, overrides=Overrides(set_aside=over)).answer == "no"


def test_the_verdict_is_unknown_if_counting_began_within_the_period() -> None:
    found = judged(totals(since=995))
    assert found.answer == "unknown"
    assert said(found, "unknown") == [
        ("nobody has called it since counting began at 1972-09-22T00:00:00Z, less than 30 days ago")
    ]
    assert judged(totals(since=995), within="1d").answer == "yes"


@pytest.mark.parametrize(
    ("kind", "looked", "by", "mend"),
    [
        ("differences", "compared", "shadow", "shadow reset person 1 --why TEXT"),
        ("violations", "checked", "schema", "without the old violations"),
    ],
)
def test_differences_and_violations_prevent_retirement(
    kind: str, looked: str, by: str, mend: str
) -> None:
    cases, field = CounterDelta(looked, SERVED, 40), CounterDelta(kind, (*SERVED, "name"), 2)
    assert f"{by} {kind} were not checked" in said(judged(totals()), "note")
    assert f"no {by} {kind} in 40 responses" in said(judged(totals(counts=(cases,))), "yes")
    found = judged(totals(counts=(cases, field)))
    assert found.answer == "no"
    assert said(found, "no") == [f"{by} {kind}: name 2 times, last at 1972-09-26T00:00:00Z"]
    (remedy,) = [reason.remedy for reason in found.reasons if reason.answer == "no"]
    assert remedy.startswith("correct the conversion, or ")
    assert remedy.endswith(mend)


def test_responses_that_could_not_be_validated_are_only_a_note() -> None:
    left_out = (CounterDelta("unchecked", SERVED, 7),)
    assert (
        "schema violations were not checked: 7 responses could not be validated; check_failed in"
        " the log has the reason"
    ) in said(judged(totals(counts=left_out)), "note")


def test_control_characters_in_the_name_of_a_field_are_escaped() -> None:
    """The names of differing fields come from bodies, which clients may have written."""
    field = "/a\n  yes  nobody has called it\x1b[1A"
    found = judged(totals(counts=(CounterDelta("differences", (*SERVED, field), 2),)))
    (line,) = (each for each in sentence(found).splitlines() if "shadow differences" in each)
    assert r"shadow differences: /a\n  yes  nobody has called it\x1b[1A 2 times" in line


def test_requests_that_would_be_refused_prevent_retirement() -> None:
    counts = (
        CounterDelta("validated", SERVED, 4),
        CounterDelta("differences", (*SERVED, "request /name"), 2),
    )
    found = judged(totals(counts=counts))
    (text,) = said(found, "no")
    assert text == "shadow differences: request /name 2 times, last at 1972-09-26T00:00:00Z"
    assert "no shadow differences in 4 responses" in said(judged(totals(counts=counts[:1])), "yes")


def test_uncompared_operations_are_a_note() -> None:
    shadowed = edited("{ service: old }", '{ service: old, shadow: { via: "2" } }')
    path = "/v{version}/person"
    operations = [("GET", path), ("POST", path)]
    seen = tuple(CounterDelta("operations", (*SERVED, *each), 1) for each in operations)
    compared = CounterDelta("operations_compared", (*SERVED, "GET", path), 1)
    counted = totals(counts=(*seen, compared))
    missing = f"never compared: POST {path}"
    found = judged(counted, shadowed)
    assert missing in said(found, "note")
    assert found.answer == "yes"
    # Without a shadow, comparisons are not needed.
    assert missing not in said(judged(totals(counts=seen)), "note")
    methods = "GET", "DELETE"
    documented = frozenset(DocumentedOperation(method, "/doc", path) for method in methods)
    judgement = verdict(
        SERVED,
        StateView(counted, NOW, NOW, None, ()),
        loaded(shadowed),
        NO_OVERRIDES,
        within="30d",
        documented=documented,
    )
    assert f"never compared: DELETE {path}" in said(judgement, "note")


def test_a_version_that_serves_another_one_cannot_be_retired() -> None:
    found = judged(totals(), edited("{ service: new }", '{ via: "1" }'))
    assert said(found, "no") == ["version 2 is served from it"]


def test_a_version_served_from_another_one_can_be_retired() -> None:
    found = judged(totals(), edited("{ service: old }", '{ via: "2" }'))
    assert found.answer == "yes"
    assert "it is served from version 2, and no other service is configured for it" in said(
        found, "note"
    )


@pytest.mark.parametrize(
    ("lifecycle", "answer", "text"),
    [
        ("{ sunset: 1972-12-31 }", "no", "it is promised until 1972-12-31T00:00:00Z"),
        ("{ sunset: 1972-01-01 }", "yes", "its sunset was 1972-01-01T00:00:00Z"),
        (
            "{ sunset: 1972-01-01, exempt: [ { client: acme, until: 1973-01-01 } ] }",
            "no",
            "acme may use it until 1973-01-01T00:00:00Z",
        ),
        ("{ deprecated: 1972-01-01 }", "note", "no end was announced to clients"),
    ],
)
def test_a_future_sunset_or_exemption_prevents_retirement(
    lifecycle: str, answer: str, text: str
) -> None:
    named = "clients: { by: [ { header: X } ] }\n"
    rules = named + edited("{ service: old }", f"{{ service: old, lifecycle: {lifecycle} }}")
    found = judged(totals(), rules)
    assert found.answer == ("no" if answer == "no" else "yes")
    assert text in said(found, answer)


def test_a_version_without_a_service_can_be_retired() -> None:
    rules = edited("{ service: old }", "{ lifecycle: { sunset: 1972-01-01 } }")
    found = judged(totals(), rules)
    assert found.answer == "yes"
    assert "no service serves it any longer" in said(found, "note")


def test_a_partial_cutover_prevents_retirement() -> None:
    cutover = '{ service: old, cutover: { via: "2", percent: 25, sticky_by: request } }'
    rules = edited("{ service: old }", cutover, RULES.replace("service: old\n", "service: new\n"))
    assert said(judged(totals(), rules), "no") == ["its cutover is at 25%"]
    assert judged(totals(), rules, Overrides(percents={SERVED: 100.0})).answer == "yes"


def test_the_printed_verdict_has_each_reason_with_its_remedy() -> None:
    head, first, remedy, *_ = sentence(judged(totals(("acme", 990)))).splitlines()
    assert head == "Version 1 of person cannot be retired yet:"
    assert first.startswith("  no       1 client called it in the last 30 days: acme at 1972-09-17")
    assert remedy.startswith("           -> ask them to use another version; if one may stay: ")


@pytest.mark.parametrize(
    ("within", "answer", "spelled"),
    [
        ("172800s", None, ""),
        ("90s", "yes", "90 seconds"),
        ("1m", "yes", "minute"),
        ("11h", "yes", "11 hours"),
        ("13h", "no", "13 hours"),
        ("1d", "no", "day"),
        ("0d", None, ""),
        ("1w", None, ""),
        ("-1d", None, ""),
        ("", None, ""),
    ],
)
def test_a_period_has_a_number_and_a_unit(within: str, answer: str | None, spelled: str) -> None:
    counted = totals(("acme", 999.5))
    if answer is None:
        with pytest.raises(ValueError, match="write it like 30d, 12h, 5m or 30s"):
            judged(counted, within=within)
    else:
        (text,) = said(judged(counted, within=within), answer)
        assert f"in the last {spelled}" in text


SINCE = "since 1972-09-26T00:00:00Z"


@pytest.mark.parametrize(
    ("doubt", "text", "remedy"),
    [
        (
            DataGap("b", NOW - DAY),
            f"the replica b has sent no heartbeat {SINCE}, and may have served it since",
            "start it again with its disk; if it is lost for good: fleet forget b",
        ),
        (
            DataGap(None, NOW - DAY),
            (
                f"the database has been unreachable {SINCE}, so the counts of other replicas are"
                " unknown"
            ),
            "repeat this when it is reachable",
        ),
    ],
)
def test_the_verdict_is_unknown_if_data_is_missing(doubt: DataGap, text: str, remedy: str) -> None:
    over = edited(
        "{ service: old }",
        "{ service: old, lifecycle: { deprecated: 1970-01-01, sunset: 1970-01-02 } }",
    )
    assert judged(totals(), over, within="1d").answer == "yes"
    found = judged(totals(), over, within="1d", doubts=(doubt,))
    assert found.answer == "unknown"
    assert found.reasons[0] == Reason("unknown", text, remedy)
    called = judged(totals(("acme", 999.5)), over, doubts=(doubt,))
    assert called.answer == "no"


def test_the_verdict_is_unknown_with_the_counts_of_only_one_replica() -> None:
    found = judged(totals(), RULES, replica="b")
    assert [each for each in found.reasons if each.answer == "unknown"] == [
        Reason(
            "unknown",
            "these are the counts of the replica b only",
            "include all replicas: remove 'replica'",
        )
    ]
    away = judged(totals(), RULES, replica="b", doubts=(DataGap(None, NOW - DAY),))
    (text,) = said(away, "unknown")
    assert text.startswith("the database has been unreachable since")


HOTEL = """\
services:
  v1: { targets: ["http://127.0.0.1:8001"] }
  v2: { targets: ["http://127.0.0.1:8002"] }
  v3: { targets: ["http://127.0.0.1:8003"] }
apis:
  person:
    endpoints: [ { path: "/{rest*}", version: { in: header, name: V } } ]
    versions:
      "0": { via: "2" }
      "1": ONE
      "2": { service: v2 }
      "3": { service: v3 }
    conversions:
      - { between: ["0", "1"], changes: [] }
      - between: ["1", "2"]
        operations: [ { older: GET /stats, service: v1 } ]
      - { between: ["2", "3"], changes: [] }
"""
OFF = "stop {} after the version is removed from the configuration"


def needs(one: str) -> dict[str, str]:
    reasons = judged(totals(), HOTEL.replace("ONE", one)).reasons
    return {each.text: each.remedy for each in reasons if "it needs" in each.text}


def test_the_verdict_names_every_service_that_a_version_needs() -> None:
    operations = "operations that another version lacks"
    assert needs('{ via: "2" }') == {
        "it needs v2, as do version 0 of person, version 2 of person": "",
        f"it needs v1 for {operations}, as does version 0 of person": "",
    }
    cutover = '{ service: v1, cutover: { via: "3", percent: 5, sticky_by: request } }'
    assert needs(cutover) == {
        "it needs v1, as does version 0 of person": "",
        "it needs v3 for its cutover, as does version 3 of person": "",
    }
    assert needs('{ service: v1, shadow: { via: "2" } }') == {
        "it needs v1, as does version 0 of person": "",
        "it needs v2 for its shadow, as do version 0 of person, version 2 of person": "",
    }


def test_a_service_that_no_other_version_needs_may_be_stopped() -> None:
    rules = HOTEL.replace('      "0": { via: "2" }\n', "").replace(
        '      - { between: ["0", "1"], changes: [] }\n', ""
    )
    reasons = judged(totals(), rules.replace("ONE", '{ via: "2" }')).reasons
    text = "it needs v1 for operations that another version lacks; nothing else needs it"
    assert Reason("note", text, OFF.format("v1")) in reasons


def test_a_version_that_serves_operations_of_others_cannot_be_retired() -> None:
    found = judged(totals(), HOTEL.replace("ONE", "{ service: v1 }"))
    text = "version 0 is served from it for operations that another version lacks"
    assert said(found, "no") == [text]


def test_a_shadow_that_uses_a_version_is_only_a_note() -> None:
    rules = edited("{ service: new }", '{ service: new, shadow: { via: "1" } }')
    found = judged(totals(), rules)
    assert found.answer == "yes"
    assert "the shadow of version 2 sends requests to it" in said(found, "note")
    cutover = '{ service: new, cutover: { via: "1", percent: 5, sticky_by: request } }'
    found = judged(totals(), edited("{ service: new }", cutover))
    assert said(found, "no") == ["version 2 is served from it for its cutover"]


def test_an_api_without_versions_has_no_lifecycle() -> None:
    view = StateView(totals(), NOW, NOW, None, ())
    found = verdict(("users", ""), view, loaded(RULES), NO_OVERRIDES, within="30d")
    assert not any("rules" in each.remedy or "sunset" in each.remedy for each in found.reasons)


def test_the_uses_of_services_are_computed_once_for_a_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules, view = loaded(RULES), StateView(totals(), NOW, NOW, None, ())
    first = verdict(SERVED, view, rules, NO_OVERRIDES, within="30d")
    monkeypatch.setattr(type(rules.router), "__iter__", lambda _: 1 / 0)
    assert verdict(SERVED, view, rules, NO_OVERRIDES, within="30d") == first
