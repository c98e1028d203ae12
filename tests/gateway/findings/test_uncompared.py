"""Operations for which no response was ever compared."""

import pytest

from gateway.findings.uncompared import is_served_elsewhere, listed, uncompared_operations
from gateway.usage.delta import CounterDelta, Delta, OperationName
from gateway.usage.operations import DocumentedOperation
from gateway.usage.totals import StateRows, Totals
from tests.gateway.rules.rules import RULES, edited, loaded

KEY = ("person", "1")
PATH = "/v{version}/person"


def totals(seen: list[OperationName], compared: list[OperationName]) -> Totals:
    made = Totals(StateRows())
    counts = [CounterDelta("operations", (*KEY, *each), 1) for each in seen]
    counts += [CounterDelta("operations_compared", (*KEY, *each), 1) for each in compared]
    made.absorb(Delta(1.0, [], [], counts, [], []))
    return made


def test_without_a_document_used_operations_without_a_comparison_are_listed() -> None:
    seen = [("POST", PATH), ("HEAD", PATH), ("GET", "/param"), ("GET", "/gone")]
    seen += [("OPTIONS", PATH), ("_OTHER", PATH)]
    rules = loaded(RULES)
    assert uncompared_operations(KEY, totals(seen, []), rules, None) == [
        "GET /param",
        f"GET {PATH}",
        f"POST {PATH}",
    ]
    counted = totals(seen, [("GET", PATH), ("HEAD", "/param")])
    assert uncompared_operations(KEY, counted, rules, None) == [f"POST {PATH}"]
    assert uncompared_operations(("person", "2"), counted, rules, None) == []


def test_with_a_document_its_operations_replace_those_that_clients_used() -> None:
    counted = totals([("GET", PATH), ("PUT", PATH)], [("GET", PATH)])
    methods = "GET", "DELETE", "TRACE"
    documented = frozenset(DocumentedOperation(method, "/doc", PATH) for method in methods)
    assert uncompared_operations(KEY, counted, loaded(RULES), documented) == [f"DELETE {PATH}"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("{ service: old }", False),
        ('{ via: "2" }', True),
        ('{ service: old, shadow: { via: "2" } }', True),
        ('{ service: old, cutover: { via: "2", percent: 5, sticky_by: request } }', True),
    ],
)
def test_a_version_with_via_shadow_or_cutover_is_served_elsewhere(
    version: str, expected: bool
) -> None:
    rules = loaded(edited("{ service: old }", version))
    assert is_served_elsewhere(KEY, totals([("GET", PATH)], []), rules) is expected
    assert is_served_elsewhere(KEY, totals([], [("GET", PATH)]), rules)


def test_a_list_names_five_operations_and_counts_the_rest() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([*"abcdef"]) == "a, b, c, d, e, and 1 more"
