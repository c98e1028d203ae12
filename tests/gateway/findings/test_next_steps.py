"""The next step of a version on its way to its end, and the row of steps with dates."""

import pytest

from gateway.base.overrides import NO_OVERRIDES, Overrides
from gateway.findings.conditions import Finding
from gateway.findings.formatting import day_text
from gateway.findings.next_steps import NextStep, next_step, steps
from gateway.findings.retirement import sentence, verdict
from gateway.store.state import StateView
from gateway.usage.delta import CounterDelta, Delta, SampleDelta
from gateway.usage.totals import StateRows, Totals
from tests.gateway.rules.rules import RULES, edited, loaded

DAY = 86_400.0
NOW = 1_000 * DAY
KEY = ("person", "1")
ENDS = "lifecycle: { deprecated: 1972-09-01, sunset: 1973-09-01 }"
SHADOW = 'shadow: { via: "2" }'
SAMPLE = {"endpoint": "/p", "field": "/total", "old": '"12.50"', "new": "12.5"}


def version(*entries: str) -> str:
    return edited("{ service: old }", f"{{ {', '.join(entries)} }}")


def unconverted(rules: str) -> str:
    before, _, rest = rules.partition("    conversions:")
    lines = rest.splitlines(keepends=True)
    kept = next(at for at, line in enumerate(lines[1:], 1) if not line.startswith("     "))
    return before + "".join(lines[kept:])


def totals(compared: int = 0, differing: int = 0, field: str = "/total", **more: int) -> Totals:
    found = Totals(StateRows(documents={"since": NOW - 90 * DAY}))
    counts = {"compared": compared, "differing": differing, **more}
    deltas = [CounterDelta(kind, KEY, count) for kind, count in counts.items() if count]
    if differing or more:
        count = differing or more["invalid"]
        deltas.append(CounterDelta("differences", (*KEY, field), count))
    request = {"request_id": "r1", "method": "GET", "path": "/v1/p"}
    sample = SampleDelta("differences", *KEY, SAMPLE | {"field": field}, request)
    found.absorb(Delta(NOW - 5 * DAY, [], [], deltas, [], [sample] if differing else []))
    return found


CASES = {
    # rules, counts, days since the last use, finding, parts of the reason, the rest of the step
    "a conversion without a shadow": (
        version("service: old"),
        *(totals(), 0, Finding.UNVERIFIED, "not compared with real responses"),
        NextStep(Finding.UNVERIFIED, "", "", "version-gateway verify --api person", "", SHADOW),
    ),
    "a planned end without a conversion": (
        unconverted(version("service: old", ENDS)),
        *(
            totals(),
            0,
            Finding.UNCONVERTED,
            "Its end is announced. With a conversion, version 2 can serve it.",
        ),
        NextStep(
            Finding.UNCONVERTED, "", change='conversions:\n  - between: ["1", "2"]\n    changes: []'
        ),
    ),
    "a shadow without requests": (
        version("service: old", SHADOW),
        *(totals(), 0, Finding.SHADOWED, "not compared a response"),
        NextStep(Finding.SHADOWED, "", "It waits for requests of clients."),
    ),
    "responses that differ": (
        version("service: old", SHADOW),
        *(totals(120, 120), 0, Finding.DIFFERS),
        '120 of 120 responses differ in /total: clients get "12.50", and would get 12.5.',
        NextStep(
            Finding.DIFFERS,
            "",
            change="between 1 and 2: type: { field: total, newer: number, older: text }",
        ),
    ),
    "requests that would be refused": (
        version("service: old", SHADOW),
        *(totals(0, 0, "request /age", validated=9, invalid=3), 0, Finding.DIFFERS),
        *("3 of 9 requests would be refused for /age.", NextStep(Finding.DIFFERS, "", change="x")),
    ),
    "responses that are equal": (
        version("service: old", SHADOW),
        *(totals(120), 0, Finding.COMPARED, "All 120 responses compared are equal"),
        NextStep(
            Finding.COMPARED,
            "",
            add='cutover: { via: "2", steps: [1, 10, 50, 100], every: 1h, gates: { errors: 1% } }',
        ),
    ),
    "a cutover below 100 percent": (
        version("service: old", 'cutover: { via: "2", percent: 40 }'),
        *(totals(), 0, Finding.ROLLOUT, "40% of its requests go to the service of version 2"),
        NextStep(Finding.ROLLOUT, "", "It waits for the evidence of its current step."),
    ),
    "a cutover at 100 percent": (
        version("service: old", 'cutover: { via: "2", percent: 100 }'),
        *(totals(), 0, Finding.CUT_OVER, "All its requests go to the service of version 2"),
        NextStep(
            *(Finding.CUT_OVER, "", "", "", "", 'via: "2"'),
            frozenset({"service", "shadow", "cutover"}),
        ),
    ),
    "a deprecated version with callers": (
        version('via: "2"', ENDS),
        *(totals(), 1, Finding.CALLED, "deprecated, and acme calls it."),
        NextStep(Finding.CALLED, "", "It waits for its last clients."),
    ),
    "a deprecated version without callers": (
        version('via: "2"', ENDS),
        *(totals(), 31, Finding.UNCALLED, "no client has used it for 30 days."),
        NextStep(Finding.UNCALLED, "", "It waits for its sunset on 1 Sep 1973."),
    ),
    "one without a sunset": (
        version('via: "2"', "lifecycle: { deprecated: 1972-09-01 }"),
        *(totals(), 31, Finding.UNCALLED, "Add a sunset to its lifecycle."),
        NextStep(Finding.UNCALLED, ""),
    ),
}


@pytest.mark.parametrize(
    ("rules", "counts", "days", "finding", "reason", "rest"), CASES.values(), ids=CASES
)
def test_each_state_of_a_version_has_one_next_step(
    rules: str, counts: Totals, days: float, finding: Finding, reason: str, rest: NextStep
) -> None:
    served = NOW - days * DAY
    found = next_step(KEY, loaded(rules), counts, NO_OVERRIDES, NOW, served, "acme calls it")
    assert found is not None
    assert found.finding is finding
    assert reason in found.reason
    if rest.change != "x":
        assert found._replace(reason="") == rest


@pytest.mark.parametrize(
    "rules",
    [
        unconverted(RULES),
        version('via: "2"'),
        version("service: old", "lifecycle: { sunset: 1971-01-01 }"),
    ],
    ids=["no conversion and no end", "served by another version", "after the sunset"],
)
def test_a_version_that_stays_as_it_is_has_no_next_step(rules: str) -> None:
    assert next_step(KEY, loaded(rules), totals(), NO_OVERRIDES, NOW, NOW) is None


def test_the_newest_version_has_no_steps() -> None:
    assert [*steps(("person", "2"), loaded(RULES), totals(), NO_OVERRIDES, NOW)] == []


def test_an_operator_who_sets_100_percent_reaches_the_next_step() -> None:
    rules = loaded(version("service: old", 'cutover: { via: "2", percent: 40 }'))
    overrides = Overrides(percents={KEY: 100.0})
    found = next_step(KEY, rules, totals(), overrides, NOW, NOW)
    assert found is not None
    assert found.finding is Finding.CUT_OVER


def test_the_row_of_steps_has_the_dates_that_the_gateway_knows() -> None:
    cutover = 'cutover: { via: "2", percent: 100 }'
    rules = loaded(version("service: old", SHADOW, cutover, ENDS))
    row = steps(KEY, rules, totals(120), NO_OVERRIDES, NOW, moved=NOW - DAY)
    shown = [(each.name, each.done, each.at and day_text(each.at), each.text) for each in row]
    assert shown == [
        ("converted", True, 0.0, "to version 2"),
        ("verified", False, 0.0, "see shadowed"),
        ("shadowed", True, "22 Sep 1972", "0 of 120 differ"),
        ("cut over", True, "26 Sep 1972", "100%"),
        ("deprecated", True, "1 Sep 1972", ""),
        ("retired", False, "1 Sep 1973", ""),
    ]


def test_the_verdict_has_the_next_step() -> None:
    view = StateView(totals(120, 120), NOW, NOW, None, ())
    rules = loaded(version("service: old", SHADOW))
    found = verdict(KEY, view, rules, NO_OVERRIDES, within="30d")
    assert found.next.startswith("120 of 120 responses differ in /total")
    assert sentence(found).splitlines()[-1] == f"  next     {found.next}"
    assert "between 1 and 2: type: { field: total" in found.next
