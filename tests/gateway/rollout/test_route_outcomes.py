"""Outcomes of requests, and their sums, which do not depend on the order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import FaultCode
from gateway.rollout.gates import MEASURES
from gateway.rollout.route_outcomes import OUTCOMES, RouteOutcomes, measure_of, outcome_of
from tests.gateway.rollout.outcomes import outcomes
from tests.gateway.world import LAW


@pytest.mark.parametrize(
    ("status", "code", "aborted", "found"),
    [
        (200, None, False, "2xx"),
        (101, None, False, "2xx"),
        (304, None, False, "3xx"),
        (400, None, False, "4xx"),
        (422, None, False, "4xx"),
        (401, None, False, "401"),
        (403, None, False, "403"),
        (404, None, False, "404"),
        (429, None, False, "429"),
        (413, FaultCode.BODY_TOO_LARGE, False, "4xx"),
        (400, FaultCode.UNCONVERTIBLE_REQUEST, False, "conversion"),
        (415, FaultCode.UNSUPPORTED_MEDIA_TYPE, False, "conversion"),
        (502, FaultCode.CONVERSION_FAILED, False, "conversion"),
        (504, FaultCode.UPSTREAM_TIMEOUT, False, "5xx"),
        (999, None, False, "5xx"),
        (204, FaultCode.UPSTREAM_UNREACHABLE, False, "5xx"),  # a preflight
        (200, FaultCode.UPSTREAM_PROTOCOL, True, "5xx"),
        (500, None, True, "5xx"),
        (200, None, True, "abandoned"),
        (0, None, True, "abandoned"),
    ],
)
def test_each_request_has_one_outcome(
    status: int, code: FaultCode | None, aborted: bool, found: str
) -> None:
    assert OUTCOMES[outcome_of(status, code, aborted=aborted)] == found


def test_each_bad_outcome_has_a_measure() -> None:
    measures = {name: measure_of(place) for place, name in enumerate(OUTCOMES)}
    assert {name for name, measure in measures.items() if measure is None} == {"2xx"}
    assert measures["4xx"] == "other 4xx"
    assert {measure for measure in measures.values() if measure} | {"overdue"} == MEASURES.keys()


def test_failures_of_the_service_and_of_conversions_are_no_fault_of_the_client() -> None:
    assert outcomes(40, overdue=2, _4xx=1, _404=3, _5xx=5, _conversion=6).failures == 11


COUNTS = st.integers(0, 1000)
SUMS = st.builds(
    RouteOutcomes,
    COUNTS,
    COUNTS,
    st.tuples(*[COUNTS] * len(OUTCOMES)),
    COUNTS.map(float),
    COUNTS,
    COUNTS,
)


@LAW
@given(SUMS, SUMS, SUMS)
def test_sums_of_outcomes_do_not_depend_on_the_order(
    one: RouteOutcomes, two: RouteOutcomes, three: RouteOutcomes
) -> None:
    assert one.plus(two).plus(three) == three.plus(one.plus(two))
    assert one.plus(two).minus(two) == one
