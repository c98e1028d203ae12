"""Failures and operator actions under a load whose responses are all checked."""

from collections.abc import Iterator
from functools import partial
from random import Random

import pytest

from tests.gateway.talk import soon
from tests.soak.house import House, open_house
from tests.soak.load import Load
from tests.soak.questions import any_of, person

pytestmark = pytest.mark.slow

CLIENTS = 12


@pytest.fixture(scope="module")
def standing_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with open_house(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture
def house(standing_house: House) -> House:
    standing_house.load = Load(standing_house.gateway)
    return standing_house


def check(load: Load, *, explained: bool = False) -> None:
    """Check the responses; with `explained`, allow errors that a kill explains."""
    assert not load.wrong
    assert not load.unexplained
    assert explained or not load.explained
    assert load.right > 10 * CLIENTS


async def test_a_killed_worker_costs_only_its_own_requests(house: House) -> None:
    load = house.load
    async with load.running(CLIENTS, partial(any_of, Random(1)), pause=0):
        await soon(lambda: load.right > CLIENTS)
        while not load.explained:  # a worker may have no connection with a request in flight
            await house.kill_worker()
    check(load, explained=True)
    # Each of its connections may have had one request in flight.
    assert sum(load.explained.values()) <= len(load.cut)


@pytest.mark.parametrize("backend", ["person_v1", "person_v2_a", "mirror"])
async def test_a_killed_backend_costs_only_its_own_requests(house: House, backend: str) -> None:
    load = house.load
    async with load.running(CLIENTS, partial(any_of, Random(1))):
        await house.restart(backend)
        await soon(lambda: load.right > 10 * CLIENTS)
    check(load, explained=True)


async def test_two_hundred_reloads_cost_no_request(house: House) -> None:
    load = house.load
    async with load.running(CLIENTS, partial(person, Random(1))):
        for _ in range(200):
            await house.toggle()
    check(load)


async def test_adding_and_removing_targets_costs_no_request(house: House) -> None:
    load = house.load
    every = house.rules.targets
    async with load.running(CLIENTS, partial(any_of, Random(1))):
        for targets in (every[:1], every[1:], every) * 5:
            await house.reload(targets=targets)
        for name in every:
            await house.roll(name)
    check(load)
