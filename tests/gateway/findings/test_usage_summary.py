"""Usage summaries: their numbers, and which days of the history they read."""

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from gateway.findings.operator import Operator
from gateway.findings.summaries import DAYS, UsageSummaries, UsageSummary
from gateway.routing.snapshot import Snapshot
from gateway.store.local import LocalState
from gateway.store.state import DataGap, Membership, StateView
from gateway.usage.delta import BOUNDS, Delta, TrafficDelta, UsageDelta
from gateway.usage.history import History, HistoryQuery, HistoryView

KEY, DAY = ("person", "1"), 86_400


@dataclass
class Watched:
    """A state that records queries of the history and can simulate an unreachable store.

    Attributes:
        spans: for each query, its span and the span of its clients, in days.
        away: whether the store is unreachable.
    """

    state: LocalState
    spans: list[tuple[float, float]] = field(default_factory=list)
    away: bool = False

    async def view(self, *, clients: bool) -> StateView:
        found = await self.state.view(clients=clients)
        return found._replace(gaps=(DataGap(None, 1.0),)) if self.away else found

    async def history(self, query: HistoryQuery) -> HistoryView:
        assert query.span is not None
        assert query.callers is not None
        self.spans.append((query.span / DAY, query.callers / DAY))
        if self.away:
            return HistoryView(query, {}, time.time(), "a")
        # Return a copy, so that later counts do not change the result.
        return History(self.state.totals.history.rows()).view(query, time.time())


def count(state: LocalState, days: int, clients: int, failed: int = 0) -> None:
    """Count one request for each client, `days` ago, with a duration below 5 ms."""
    at = time.time() - days * DAY
    usages = [UsageDelta(*KEY, "/p", f"{days}-{c}", 1, 0, c < failed, 1) for c in range(clients)]
    buckets = [clients, *[0] * len(BOUNDS)]
    traffic = [TrafficDelta(*KEY, "/p", "GET", 200, "", buckets, 0.001, 0)]
    state.absorb(Delta(at, usages, traffic, [], [], []))


@pytest.fixture
def watched() -> Watched:
    rules = cast(Snapshot, None)  # never read
    return Watched(LocalState(Membership("a", lambda: rules, lambda: "hash")))


def summaries(watched: Watched) -> UsageSummaries:
    return UsageSummaries(cast(Operator, SimpleNamespace(state=watched)))


async def latest(made: UsageSummaries) -> UsageSummary:
    await made._make()
    assert made._known is not None
    return made._known[1][KEY]


async def test_a_summary_counts_requests_failures_and_callers(watched: Watched) -> None:
    for days, clients, failed in ((40, 9, 9), (29, 8, 4), (6, 3, 0), (1, 5, 1), (0, 2, 0)):
        count(watched.state, days, clients, failed)
    found = await latest(summaries(watched))
    assert (found.requests, found.failed, found.callers) == (18, 5, 5)
    assert found.trend == (8, *[0] * 22, 3, *[0] * 4, 5, 2)
    assert found.quick == pytest.approx(0.95 * BOUNDS[0])


async def test_past_days_are_read_again_after_a_while(watched: Watched) -> None:
    """Counts that arrive late are in the summary once their days are read again."""
    made = summaries(watched)
    count(watched.state, 5, 1)
    assert (await latest(made)).requests == 1
    assert [*watched.spans[0]] == [DAYS, 7]
    count(watched.state, 0, 2)
    count(watched.state, 5, 4)
    assert (await latest(made)).requests == 3
    assert set(watched.spans[1:]) == {(2, 7)}
    made._whole_until = 0.0
    assert (await latest(made)).requests == 7


async def test_the_previous_summary_is_kept_while_the_store_is_unreachable(
    watched: Watched,
) -> None:
    made = summaries(watched)
    count(watched.state, 5, 1)
    assert (await latest(made)).requests == 1
    watched.away = True
    asked = len(watched.spans)
    assert (await latest(made)).requests == 1
    assert len(watched.spans) == asked


async def test_a_history_of_only_one_replica_is_read_again_at_the_next_call(
    watched: Watched,
) -> None:
    """In this test, the store becomes unreachable during the first view."""
    made = summaries(watched)
    count(watched.state, 5, 1)
    watched.away = True
    assert (await made.latest())[1][KEY].requests == 0
    watched.away = False
    assert (await latest(made)).requests == 1
