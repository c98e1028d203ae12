"""The command line shared by the soak and the siege."""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol

from tests.soak.house import House, open_house
from tests.soak.leaks import CENSUS

_MOST_SHOWN = 20


class Trial(Protocol):
    async def run(self, seconds: float) -> list[str]:
        """Run for some seconds; return the errors, one line each."""
        ...


MakeTrial = Callable[[House, Random, Callable[[str], None], asyncio.Event], Trial]
"""Creates a trial of a house.

Arguments: the source of random choices, the function that prints a line, and the event that ends
the trial early.
"""


def run(name: str, make: MakeTrial, praise: str) -> int:
    """Run for the duration in the command line; return the exit status.

    Args:
        name: the name of the module that is run.
        praise: the line that is printed if there are no errors.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long; 10 by default")
    parser.add_argument("--seed", type=int, default=1, help="of what happens when")
    parser.add_argument(
        "--pace",
        type=float,
        default=1.0,
        help="the factor of all pauses; 200 needs 20 %% of a core",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failures = asyncio.run(
            _run(make, Path(folder), arguments.minutes * 60, Random(arguments.seed), arguments.pace)
        )
    for failure in failures[:_MOST_SHOWN]:
        _say(failure)
    _say(f"{len(failures)} failures." if failures else praise)
    return 1 if failures else 0


async def _run(
    make: MakeTrial, folder: Path, seconds: float, random: Random, pace: float
) -> list[str]:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with open_house(folder, **CENSUS) as house:
        house.load.pace = pace
        return await make(house, random, _say, stop).run(seconds)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
