"""The soak from the command line.

    python -m tests.soak [--minutes N] [--seed N]

Prints a line every 10 seconds; ends early on Ctrl-C. Exit status: 0, or 1 with what is wrong.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.soak.house import open_house
from tests.soak.leaks import CENSUS
from tests.soak.soak import Soak

_MOST_SHOWN = 20


def main() -> int:
    """Run; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long; 10 by default")
    parser.add_argument("--seed", type=int, default=1, help="of what happens when")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failures = asyncio.run(_run(Path(folder), arguments.minutes * 60, Random(arguments.seed)))
    for failure in failures[:_MOST_SHOWN]:
        _say(failure)
    _say(f"{len(failures)} failures." if failures else "Nothing wrong, lost, doubled or leaked.")
    return 1 if failures else 0


async def _run(folder: Path, seconds: float, random: Random) -> list[str]:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with open_house(folder, **CENSUS) as house:
        return await Soak(house, random, _say, stop).run(seconds)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
