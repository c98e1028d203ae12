"""Rate limits that the replicas of a fleet share."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fleet.cluster import Cluster
from tests.fleet.fleet import Fleet
from tests.gateway.kit import Program, wait_for
from tests.gateway.live.raw import get

LIMITS = """
rate_limits:
  - { name: shared, by: address, rate: 20/h, shared: true }
"""


@pytest.fixture
def fleet(database: str, cluster: Cluster, tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        fleet = Fleet(stack, tmp_path, database, cluster, more=LIMITS)
        for name in ("a", "b"):
            fleet.start(name)
        yield fleet


def status(program: Program) -> int:
    return get(program, "/v2/person").status


def test_replicas_share_a_limit_with_a_bounded_overshoot(fleet: Fleet) -> None:
    a, b = fleet.replicas.values()
    assert [status(a) for _ in range(21)] == [200] * 20 + [429]
    admitted = 0
    while status(b) == 200:  # until b has received the counts of a
        admitted += 1
        time.sleep(0.3)
    assert admitted < 20  # 20 would be the sum of two separate limits


def test_a_replica_without_the_database_limits_requests_by_itself(fleet: Fleet) -> None:
    a, b = fleet.replicas.values()
    fleet.relay.refuse()
    wait_for(lambda: all(each.log("state_unwritten") for each in (a, b)))
    for program in (a, b):
        assert [status(program) for _ in range(21)] == [200] * 20 + [429]
