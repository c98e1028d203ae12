"""Fixtures of the fleet's tests: one PostgreSQL server, and a database for each test."""

import signal
from collections.abc import Iterator
from functools import partial

import pytest

from tests.fleet.cluster import Cluster, Execute
from tests.gateway.kit import free_port


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Start a server for all tests that do not stop or reconfigure it."""
    made = Cluster(free_port())
    yield made
    made.remove()


@pytest.fixture
def database(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    number = cluster.execute("SELECT count(*) FROM pg_database")[0]
    return cluster.create(f"test{number}")


@pytest.fixture
def execute(cluster: Cluster, database: str) -> Execute:
    return partial(cluster.execute, database=database.rpartition("/")[2])


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """Start a server that the test may stop."""
    made = Cluster(free_port())
    yield made
    made.signal(signal.SIGCONT)
    made.remove()
