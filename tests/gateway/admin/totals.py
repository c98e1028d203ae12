"""Totals of a little traffic, to report on."""

from gateway.state.state_changes import StateChanges
from gateway.state.totals import Totals
from gateway.telemetry.delta import (
    BOUNDS,
    CounterDelta,
    CutoverDelta,
    Delta,
    SampleDelta,
    TrafficDelta,
    UsageDelta,
)

KEY = ("person", "1")
NOTHING = [0] * (len(BOUNDS) + 1)
FAST = [3, 1, *NOTHING[2:]]
DIFFERENCE = {"endpoint": "/p", "field": "/name", "old": '"B"', "new": '"Bob"'}


def totals() -> Totals:
    """Return what a worker reports, ten seconds after 1970 began."""
    found = Totals(StateChanges(documents={"since": 5}))
    found.absorb(
        Delta(
            10.0,
            [
                UsageDelta("person", "1", "/p", "acme", 5, 1, 2, 4),
                UsageDelta("person", "1", "/p", "", 7, 0, 0, 7),
                UsageDelta("person", "2", "/p", "late", 3, 3, 0, 0),
            ],
            [TrafficDelta("person", "1", "/p", [0, 0, 3, 0, 1, 0], FAST, 0.004, 2)],
            [
                CounterDelta("compared", KEY, 9),
                CounterDelta("differing", KEY, 3),
                CounterDelta("differences", (*KEY, "/name"), 3),
                CounterDelta("noise", (*KEY, "/id"), 12),
                CounterDelta("noise", (*KEY, "/name"), 1),
                CounterDelta("shed", (*KEY, "load"), 2),
            ],
            [CutoverDelta("person", "1", "new", 4, 1, FAST, 0.004)],
            [SampleDelta("differences", *KEY, DIFFERENCE)],
        )
    )
    return found
