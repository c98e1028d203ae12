"""Loads of small requests: one that saturates a system, and one with a constant rate."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from benchmarks import openloop, wrk
from benchmarks.lab import Lab, Running, ask
from benchmarks.measure import Round, Sample
from benchmarks.request import Request
from benchmarks.systems import System


def closed(
    lab: Lab, system: Running, request: Request, expected: str, seconds: int
) -> Callable[[], Sample]:
    """Return a run of a request under closed load, after a first response and a warm-up."""
    ask(system, request, expected)
    wrk.run(wrk.command(system.port, request, 1), 1)
    command = lab.load(wrk.command(system.port, request, seconds))
    return partial(lab.sample, system, partial(wrk.run, command, seconds))


def beside(
    lab: Lab,
    systems: Mapping[str, tuple[System | Running, Request]],
    expected: str,
    seconds: int,
) -> Callable[[], Round]:
    """Return a run of several systems at the same time on one core, each under closed load.

    A disturbance of the machine slows all of them. So differences of a µs are visible that
    measurements one after the other would not show. Systems that are not running yet are started
    for each run, because two processes of one program also differ.
    """
    orders = [list(systems)[::-1], list(systems)]

    def run() -> Round:
        orders.reverse()  # no system is always started first
        with lab.interlude(), ThreadPoolExecutor(len(systems)) as threads:
            running = {}
            for name in orders[0]:
                system = systems[name][0]
                running[name] = lab.measured(system) if isinstance(system, System) else system
            for name, system in running.items():
                ask(system, systems[name][1], expected)

            def load(name: str, seconds: int) -> Sample:
                command = lab.load(wrk.command(running[name].port, systems[name][1], seconds))
                return lab.sample(running[name], partial(wrk.run, command, seconds))

            def loads(seconds: int) -> Round:
                made = {name: threads.submit(load, name, seconds) for name in running}
                return {name: made[name].result() for name in systems}

            loads(1)
            return loads(seconds)

    return run


def paced(
    lab: Lab, system: Running, request: Request, expected: str, rate: float, seconds: int
) -> Callable[[], Sample]:
    """Return a run of a request at a constant rate, after a first response."""
    ask(system, request, expected)
    load = partial(openloop.load, system.port, request, rate, seconds)
    return partial(lab.sample, system, load)
