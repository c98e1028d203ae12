"""Gates: what speaks against the new way, word for word."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.cutover.gates import GateEvidence, Gates, RouteOutcomes, objection
from tests.gateway.core.world import LAW

GATES = Gates(differences=0.01, errors=0.02, latency=1.5, minimum=100)
LATE = "latency: a request takes 16.0 ms the new way, 10.0 ms the old way; 1.5x is allowed"


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (GateEvidence(), None),
        (GateEvidence(compared=10, differing=1), None),
        (
            GateEvidence(compared=10, differing=2),
            "differences: 2 of 10 compared answers differ (20%); 1% may",
        ),
        (GateEvidence(compared=1000, differing=10), None),
        (
            GateEvidence(compared=1000, differing=11),
            "differences: 11 of 1000 compared answers differ (1.1%); 1% may",
        ),
        (GateEvidence(new=RouteOutcomes(3, 2, 1)), None),
        (
            GateEvidence(new=RouteOutcomes(3, 3, 1)),
            "errors: 3 of 3 requests failed the new way (100%), 0% the old way; 2% more may",
        ),
        (GateEvidence(RouteOutcomes(100, 10, 1), RouteOutcomes(100, 12, 1)), None),
        (
            GateEvidence(RouteOutcomes(100, 10, 1), RouteOutcomes(100, 13, 1)),
            "errors: 13 of 100 requests failed the new way (13%), 10% the old way; 2% more may",
        ),
        # What too few requests did the old way says nothing of what is usual.
        (
            GateEvidence(RouteOutcomes(99, 99, 1), RouteOutcomes(100, 3, 1)),
            "errors: 3 of 100 requests failed the new way (3%), 0% the old way; 2% more may",
        ),
        (GateEvidence(RouteOutcomes(100, 0, 1.0), RouteOutcomes(100, 0, 1.5)), None),
        (GateEvidence(RouteOutcomes(99, 0, 1.0), RouteOutcomes(100, 0, 9.0)), None),
        (GateEvidence(RouteOutcomes(100, 0, 1.0), RouteOutcomes(99, 0, 9.0)), None),
        (
            GateEvidence(RouteOutcomes(100, 0, 1.0), RouteOutcomes(200, 0, 3.2)),
            LATE,
        ),
    ],
)
def test_objection(evidence: GateEvidence, said: str | None) -> None:
    assert objection(GATES, evidence) == said


WORST = GateEvidence(RouteOutcomes(100, 0, 1), RouteOutcomes(100, 100, 100), 100, 100)


@pytest.mark.parametrize("gates", [None, Gates()])
def test_who_looks_at_nothing_objects_to_nothing(gates: Gates | None) -> None:
    assert objection(gates, WORST) is None


def test_each_looks_at_its_own() -> None:
    for name, gates in {
        "differences": replace(GATES, errors=None, latency=None),
        "errors": replace(GATES, differences=None, latency=None),
        "latency": replace(GATES, differences=None, errors=None),
    }.items():
        assert str(objection(gates, WORST)).startswith(name)


@LAW
@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_good_answers_speak_for_it(requests: int, failures: int, more: int) -> None:
    """What is not objected to is not objected to either once more requests went well."""
    failures = min(failures, requests)
    if objection(GATES, GateEvidence(new=RouteOutcomes(requests, failures, 0))) is None:
        assert (
            objection(GATES, GateEvidence(new=RouteOutcomes(requests + more, failures, 0))) is None
        )
