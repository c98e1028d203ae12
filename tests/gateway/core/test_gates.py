"""Gates: what speaks against the new way, word for word."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.gates import Evidence, Gates, Outcomes, objection
from tests.gateway.core.world import LAW

GATES = Gates(differences=0.01, errors=0.02, latency=1.5, minimum=100)
LATE = "latency: a request takes 16.0 ms the new way, 10.0 ms the old way; 1.5x is allowed"


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (Evidence(), None),
        (Evidence(compared=10, differing=1), None),
        (
            Evidence(compared=10, differing=2),
            "differences: 2 of 10 compared answers differ (20%); 1% may",
        ),
        (Evidence(compared=1000, differing=10), None),
        (
            Evidence(compared=1000, differing=11),
            "differences: 11 of 1000 compared answers differ (1.1%); 1% may",
        ),
        (Evidence(new=Outcomes(3, 2, 1)), None),
        (
            Evidence(new=Outcomes(3, 3, 1)),
            "errors: 3 of 3 requests failed the new way (100%), 0% the old way; 2% more may",
        ),
        (Evidence(Outcomes(100, 10, 1), Outcomes(100, 12, 1)), None),
        (
            Evidence(Outcomes(100, 10, 1), Outcomes(100, 13, 1)),
            "errors: 13 of 100 requests failed the new way (13%), 10% the old way; 2% more may",
        ),
        # What too few requests did the old way says nothing of what is usual.
        (
            Evidence(Outcomes(99, 99, 1), Outcomes(100, 3, 1)),
            "errors: 3 of 100 requests failed the new way (3%), 0% the old way; 2% more may",
        ),
        (Evidence(Outcomes(100, 0, 1.0), Outcomes(100, 0, 1.5)), None),
        (Evidence(Outcomes(99, 0, 1.0), Outcomes(100, 0, 9.0)), None),
        (Evidence(Outcomes(100, 0, 1.0), Outcomes(99, 0, 9.0)), None),
        (
            Evidence(Outcomes(100, 0, 1.0), Outcomes(200, 0, 3.2)),
            LATE,
        ),
    ],
)
def test_objection(evidence: Evidence, said: str | None) -> None:
    assert objection(GATES, evidence) == said


WORST = Evidence(Outcomes(100, 0, 1), Outcomes(100, 100, 100), 100, 100)


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
    if objection(GATES, Evidence(new=Outcomes(requests, failures, 0))) is None:
        assert objection(GATES, Evidence(new=Outcomes(requests + more, failures, 0))) is None
