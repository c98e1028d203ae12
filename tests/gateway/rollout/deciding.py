"""Makes decisions about cutovers like a single gateway, without a store."""

from collections.abc import Mapping

from gateway.rollout.cutovers import (
    ClockTime,
    CurrentCutover,
    Cutovers,
    CutoverState,
    PercentCommand,
)
from gateway.rollout.decisions import BY_GATEWAY, ChangeRequest, Draft
from gateway.routing.snapshot import Snapshot
from gateway.usage.totals import Totals

KEY = ("person", "1")


class Decider:
    """The cutovers of a configuration, with clocks that the test sets.

    Attributes:
        seconds: the monotonic clock.
        date: the system clock, in seconds since 1970.
    """

    def __init__(self, rules: Snapshot, documents: Mapping[str, object] | None = None) -> None:
        self.seconds, self.date = 500.0, 1_000_000_000.0
        self.documents = documents or {}
        self.totals = Totals()
        self.events: list[str] = []
        self.cutovers = Cutovers()
        self._rules = rules
        self.load()

    @property
    def at(self) -> ClockTime:
        return ClockTime(self.seconds, self.date)

    @property
    def state(self) -> CutoverState:
        return self.current().state

    def load(self) -> None:
        """Read the states again, like the leader of a fleet before each decision."""
        self.cutovers.load(self.documents, self.at)

    def go_on(self, seconds: float) -> None:
        self.seconds += seconds
        self.date += seconds

    def decide(self, after: float = 0.0) -> CutoverState:
        """Decide after this number of seconds; return the state with its date."""
        self.advance(after)
        return self.state

    def advance(self, seconds: float) -> CutoverState:
        """Decide after this number of seconds; return the state with a time of the monotonic clock.

        This method skips the judgement in `current`, which takes time.
        """
        self.go_on(seconds)
        draft = Draft(self.documents, self.date)
        counted = self.totals.route_counts
        self.cutovers.decide(draft, self._rules.cutovers, counted, self.at)
        self._adopt(draft)
        return self.cutovers._states[KEY]

    def order(self, order: float | PercentCommand, request: ChangeRequest = BY_GATEWAY) -> None:
        draft = Draft(self.documents, self.date)
        self.cutovers.request(draft, self._rules.cutovers[KEY], order, request, self.at)
        self._adopt(draft)
        self.cutovers.load(self.documents, self.at, {KEY})
        self.current()

    def current(self) -> CurrentCutover:
        cutover = self._rules.cutovers[KEY]
        evidence = self.cutovers.evidence(cutover, self.totals.route_counts, self.at)
        return self.cutovers.current(cutover, evidence, self.at)

    def _adopt(self, draft: Draft) -> None:
        self.documents = draft.documents
        self.events += [event.name for event in draft.events]
