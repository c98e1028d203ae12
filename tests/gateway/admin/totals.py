"""Totals with a few requests, for tests of reports."""

from gateway.rollout.route_outcomes import OUTCOMES
from gateway.usage.delta import (
    BOUNDS,
    CounterDelta,
    CutoverDelta,
    Delta,
    SampleDelta,
    TrafficDelta,
    UpstreamDelta,
    UsageDelta,
)
from gateway.usage.totals import StateRows, Totals

KEY = ("person", "1")
NOTHING = [0] * (len(BOUNDS) + 1)
FAST = [3, 1, *NOTHING[2:]]
ONE_FAILED = [int(name in ("2xx", "404", "5xx")) for name in OUTCOMES]
NONE_FAILED = [int(name == "2xx") for name in OUTCOMES]
REQUEST = {"request_id": "r1", "method": "GET", "path": "/v1/p"}
DIFFERENCE = {"endpoint": "/p", "field": "/name", "old": '"B"', "new": '"Bob"'}


def totals() -> Totals:
    """Return totals with one delta of a worker, ten seconds after 1970 began."""
    found = Totals(StateRows(documents={"since": 5}))
    found.absorb(
        Delta(
            10.0,
            [
                UsageDelta("person", "1", "/p", "acme", 5, 1, 2, 4),
                UsageDelta("person", "1", "/p", "", 7, 0, 0, 7),
                UsageDelta("person", "2", "/p", "late", 3, 3, 0, 0),
            ],
            [
                TrafficDelta("person", "1", "/p", "GET", 200, "", FAST, 0.008, 2),
                TrafficDelta("", "", "", "_OTHER", 404, "", FAST, 0.008, 0),
                TrafficDelta("person", "1", "/p", "GET", 0, "aborted", FAST, 0.008, 0),
            ],
            [
                CounterDelta("compared", KEY, 9),
                CounterDelta("differing", KEY, 3),
                CounterDelta("differences", (*KEY, "/name"), 3),
                CounterDelta("noise", (*KEY, "/id"), 12),
                CounterDelta("noise", (*KEY, "/name"), 1),
                CounterDelta("shed", (*KEY, "load"), 2),
            ],
            [
                CutoverDelta("person", "1", "new", 3, 1, ONE_FAILED, 0.003, FAST, 0.003),
                CutoverDelta("person", "1", "new", 1, 0, NONE_FAILED, 0.001, FAST, 0.001),
            ],
            [SampleDelta("differences", *KEY, DIFFERENCE, REQUEST)],
            upstream=[UpstreamDelta("person", "1", "[::1]:8001", "GET", 503, "503", FAST, 0.006)],
        )
    )
    return found
