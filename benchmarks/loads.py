"""The loads of small requests: one that keeps a system full, and one of a constant rate."""

from collections.abc import Callable
from functools import partial

from benchmarks import openloop, wrk
from benchmarks.lab import Lab, Running, ask
from benchmarks.measure import Sample
from benchmarks.request import Request


def closed(
    lab: Lab, system: Running, request: Request, expected: str, seconds: int
) -> Callable[[], Sample]:
    """Return the run of a request under closed load, once it is answered and the system is warm."""
    ask(system, request, expected)
    wrk.run(wrk.command(system.port, request, 1), 1)
    command = lab.load(wrk.command(system.port, request, seconds))
    return partial(lab.sample, system, partial(wrk.run, command, seconds))


def paced(
    lab: Lab, system: Running, request: Request, expected: str, rate: float, seconds: int
) -> Callable[[], Sample]:
    """Return the run of a request at a constant rate, once the system answers it."""
    ask(system, request, expected)
    load = partial(openloop.load, system.port, request, rate, seconds)
    return partial(lab.sample, system, load)
