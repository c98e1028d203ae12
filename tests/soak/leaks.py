"""Whether a process keeps what it should have let go: memory, sockets, tasks."""

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import median
from time import monotonic
from typing import NamedTuple

import psutil

from tests.gateway.kit import ROOT

# Puts the census into every Python process of a program.
CENSUS = {"PYTHONPATH": f"{Path(__file__).parent / 'census'}:{ROOT}"}
# The first part of a run fills caches, pools and the allocator's arenas.
_WARM_UP = 1 / 3
# What the rest may add, in bytes. Within seconds, only what gallops can be told from noise.
_LONG = 120.0
_GROWTH_LONG, _GROWTH_SHORT = 4e6, 32e6
_MOST_SAMPLES = 200


class Held(NamedTuple):
    """What a process holds: file descriptors besides connections to backends, and tasks."""

    descriptors: int
    tasks: int


def held(process: psutil.Process, backends: Iterable[int]) -> Held:
    """Return what a process holds; `backends` are the ports that its services listen on."""
    known = set(backends)
    kept = [
        each for each in process.net_connections("tcp") if each.raddr and each.raddr.port in known
    ]
    return Held(process.num_fds() - len(kept), tasks(process.pid))


def tasks(pid: int) -> int:
    """Return how many asyncio tasks a process has that was started with CENSUS."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"\0gateway-census-{pid}")
        return int(connection.makefile("rb").read())


def slope(samples: list[tuple[float, float]]) -> float:
    """Return by how much a value rises a second, outliers notwithstanding (Theil-Sen)."""
    some = samples[:: len(samples) // _MOST_SAMPLES + 1]
    slopes = [(b - a) / (then - now) for (now, a), (then, b) in combinations(some, 2)]
    return median(slopes) if slopes else 0.0


@dataclass
class Memory:
    """The resident memory of a process over time, in bytes and seconds."""

    process: psutil.Process
    samples: list[tuple[float, float]] = field(default_factory=list)

    def sample(self) -> None:
        """Look at it now."""
        self.samples.append((monotonic(), float(self.process.memory_info().rss)))

    @property
    def judged(self) -> list[tuple[float, float]]:
        """The samples after the warm-up."""
        return self.samples[int(len(self.samples) * _WARM_UP) :]

    @property
    def span(self) -> float:
        """The time that is judged, in seconds."""
        return self.judged[-1][0] - self.judged[0][0]

    @property
    def growth(self) -> float:
        """By how many bytes it grew in the time that is judged, by its slope."""
        return slope(self.judged) * self.span

    @property
    def leaks(self) -> bool:
        """Whether that is too much."""
        return self.growth > (_GROWTH_LONG if self.span >= _LONG else _GROWTH_SHORT)

    def __str__(self) -> str:
        first, last = self.judged[0][1] / 1e6, self.judged[-1][1] / 1e6
        rate = slope(self.judged) * 60 / 1e3
        return f"{first:.1f} MB, {last:.1f} MB at the end, {rate:+.0f} kB a minute"
