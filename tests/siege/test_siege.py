"""The siege itself is tested: the gateway withstands a short one."""

from pathlib import Path
from random import Random

import pytest

from tests.siege.siege import Siege
from tests.soak.house import open_house
from tests.soak.leaks import CENSUS

pytestmark = pytest.mark.slow


async def test_the_gateway_withstands_a_short_siege(tmp_path: Path) -> None:
    said: list[str] = []
    with open_house(tmp_path, **CENSUS) as house:
        processes = [house.supervisor, *house.workers]
        siege = Siege(house, Random(3), said.append)
        failures = await siege.run(12)
    print(said)  # noqa: T201  # shows the figures with -s
    assert not failures
    assert siege.done > 0
    assert len(siege.beside) > 50
    assert len(siege.war) > 50
    assert len(siege.asked) > 10
    assert siege.diverted.total() > 50
    assert siege.attacks.total() > 50
    assert not any(process.is_running() for process in processes)
