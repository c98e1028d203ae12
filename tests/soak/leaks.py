"""Detects leaks of a process: memory, sockets, tasks."""

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

# Adds the census to all Python processes of a program. It also lets all threads share one malloc
# arena: with one per thread (malloc(3)), resident memory would grow for a long time without a leak.
CENSUS = {"PYTHONPATH": f"{Path(__file__).parent / 'census'}:{ROOT}", "MALLOC_ARENA_MAX": "1"}
# The first part of a run fills caches, pools and the allocator's arenas.
_WARM_UP = 1 / 3
# Within seconds, only strong growth can be distinguished from noise.
_LONG = 120.0
_MOST_SAMPLES = 200


class Held(NamedTuple):
    """The resources of a process: file descriptors except connections to backends, and tasks."""

    descriptors: int
    tasks: int


class Counted(NamedTuple):
    """The census of a process: the numbers of asyncio tasks and of allocated memory blocks."""

    tasks: int
    blocks: int


def held(process: psutil.Process, backends: Iterable[int]) -> Held:
    """Return the resources that a process holds; `backends` are the ports of its services."""
    known = set(backends)
    kept = [
        each for each in process.net_connections("tcp") if each.raddr and each.raddr.port in known
    ]
    return Held(process.num_fds() - len(kept), counted(process.pid).tasks)


def counted(pid: int) -> Counted:
    """Return the census of a process that was started with CENSUS."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"\0gateway-census-{pid}")
        return Counted(*map(int, connection.makefile("rb").read().split()))


def slope(samples: list[tuple[float, float]]) -> float:
    """Return the rise of a value per second, robust against outliers (Theil-Sen)."""
    some = samples[:: len(samples) // _MOST_SAMPLES + 1]
    slopes = [(b - a) / (then - now) for (now, a), (then, b) in combinations(some, 2)]
    return median(slopes) if slopes else 0.0


@dataclass
class Growth:
    """A figure over time.

    Attributes:
        long: the allowed growth in a run of minutes, after the warm-up.
        short: the allowed growth in a run of seconds.
        samples: pairs of a time in seconds and the value at that time.
    """

    long: float
    short: float
    samples: list[tuple[float, float]] = field(default_factory=list)

    @property
    def judged(self) -> list[tuple[float, float]]:
        return self.samples[int(len(self.samples) * _WARM_UP) :]

    @property
    def total(self) -> float:
        return slope(self.judged) * self._span

    @property
    def too_much(self) -> bool:
        return self.total > (self.long if self._span >= _LONG else self.short)

    @property
    def _span(self) -> float:
        return self.judged[-1][0] - self.judged[0][0]

    def __str__(self) -> str:
        first, last = self.judged[0][1], self.judged[-1][1]
        return f"{first:,.0f} to {last:,.0f}, {slope(self.judged) * 60:+,.0f} a minute"


class Memory:
    """The memory of a process over time.

    Python counts the memory of small objects exactly, so small growth indicates a leak. Resident
    memory also includes large objects and allocations of extensions, but fragmentation also makes
    it grow.
    """

    def __init__(self, process: psutil.Process) -> None:
        self.process = process
        self.blocks = Growth(long=10_000, short=200_000)
        self.bytes = Growth(long=4e6, short=48e6)

    def sample(self) -> None:
        now = monotonic()
        self.blocks.samples.append((now, counted(self.process.pid).blocks))
        self.bytes.samples.append((now, self.process.memory_info().rss))

    @property
    def leaks(self) -> bool:
        return self.blocks.too_much or self.bytes.too_much

    def __str__(self) -> str:
        return f"{self.bytes} bytes; {self.blocks} blocks"
