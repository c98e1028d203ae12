"""Outcomes of requests, and their sums, which do not depend on the order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import FaultCode
from gateway.rollout.route_outcomes import FAILED, OUTCOMES, RouteOutcomes, outcome_of
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


def test_each_measure_has_its_count_and_its_total() -> None:
    found = outcomes(40, overdue=2, _4xx=1, _401=2, _404=3, _429=4, _5xx=5, _conversion=6)
    assert [found.count(name) for name in ("2xx", "4xx", "401", "404", "5xx", "overdue")] == [
        *(19, 10, 2, 3, 5, 2)
    ]
    assert found.failures == 11
    assert found.count("other 4xx") == 1
    written = outcomes(40, writes=7, failed_writes=3)
    assert (written.count("writes"), written.total("writes"), written.total("4xx")) == (3, 7, 40)
    checked = written._replace(checked=9, violating=4, checked_writes=5, violating_writes=1)
    assert (checked.count("answers"), checked.total("answers")) == (4, 9)
    assert (checked.count("write answers"), checked.total("write answers")) == (1, 5)


def test_all_good_is_true_only_for_2xx_and_valid_responses() -> None:
    assert outcomes(5, writes=5, failed_writes=0)._replace(checked=5).all_good
    for bad in (outcomes(5, overdue=1), outcomes(5, _3xx=1), outcomes(5, _abandoned=1)):
        assert not bad.all_good
    assert not outcomes(5)._replace(checked=5, violating=1).all_good


def test_refused_and_failed_requests_count_as_failed() -> None:
    failed = [OUTCOMES[place] for place in sorted(FAILED)]
    assert failed == ["4xx", "401", "403", "404", "429", "5xx", "conversion"]


COUNTS = st.integers(0, 1000)
SUMS = st.builds(
    RouteOutcomes,
    COUNTS,
    COUNTS,
    st.tuples(*[COUNTS] * len(OUTCOMES)),
    COUNTS.map(float),
    COUNTS.map(float),
    *[COUNTS] * 6,
)


@LAW
@given(SUMS, SUMS, SUMS)
def test_sums_of_outcomes_do_not_depend_on_the_order(
    one: RouteOutcomes, two: RouteOutcomes, three: RouteOutcomes
) -> None:
    assert one.plus(two).plus(three) == three.plus(one.plus(two))
    assert one.plus(two).minus(two) == one
