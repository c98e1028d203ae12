"""The lab: measured resources, the end of programs, and the recorded commands."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.lab import Lab, Running
from benchmarks.systems import System


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """Yield a lab with one core for everything; restore the cores of this process afterwards."""
    ours = os.sched_getaffinity(0)
    folder = tmp_path / "lab"
    folder.mkdir()
    try:
        with Lab(folder, [min(ours)] * 2) as entered:
            yield entered
    finally:
        os.sched_setaffinity(0, ours)


def started(lab: Lab) -> Running:
    return lab.beside(System((sys.executable, "-c", "import time; time.sleep(600)"), 0))


def test_programs_started_in_an_interlude_end_with_it(lab: Lab) -> None:
    with lab.interlude():
        before = started(lab)
        with lab.interlude():
            within = started(lab)
            assert within.process.poll() is None
        assert within.process.poll() is not None
        assert before.process.poll() is None
    assert before.process.poll() is not None


def test_processor_time_is_measured_more_precisely_than_in_proc(lab: Lab) -> None:
    """The times in /proc have steps of 10 ms."""
    assert started(lab).cpu() * 100 % 1 > 0


def test_ports_are_distinct_and_outside_the_range_of_outgoing_connections(lab: Lab) -> None:
    """Otherwise, a connection could occupy a port before its system restarts."""
    ports = [lab.port() for _ in range(10)]
    assert len(set(ports)) == 10
    assert max(ports) < 32768


def test_recorded_commands_contain_no_paths_of_this_machine(lab: Lab, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "this")
    lab.beside(System(command, 0))
    lab.beside(System(command, 0, code=tmp_path / "compiled"))
    plain = f"taskset -c {lab.cores[1]} {Path(sys.executable).name} -m this"
    assert lab.commands == [plain, f"PYTHONPATH=compiled {plain}"]
