"""The command line: run all comparisons, and write results.md, results.json and chart.svg."""

import argparse
import os
import resource
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks import machine
from benchmarks.chart import chart
from benchmarks.comparison import judge, run_rounds
from benchmarks.lab import Lab
from benchmarks.measure import NoResultError, Result, Sample
from benchmarks.report import data, number, page
from benchmarks.scenario import Effort, Scenario, SkippedError
from benchmarks.scenarios import SCENARIOS


def main() -> int:
    """Run the benchmark; return the exit status: 0 success, 1 an error, 2 a missing requirement."""
    arguments = _parser().parse_args()
    if obstacle := machine.obstacle():
        print(obstacle, file=sys.stderr)
        return 2
    # SIGTERM raises KeyboardInterrupt like Ctrl-C, so that all started programs are stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _allow_many_connections()
    facts = machine.describe()
    cores = sorted(os.sched_getaffinity(0))
    effort = Effort(arguments.seconds, arguments.megabytes)
    try:
        results = [
            _result(title, scenario, effort, arguments, cores)
            for title, scenario in SCENARIOS.items()
            if arguments.only in ("", scenario.__name__)
        ]
    except (NoResultError, OSError) as error:
        print(f"The benchmark failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    shown = (
        f"{arguments.rounds} rounds, {effort.seconds} s a run, large bodies of"
        f" {effort.megabytes} MB; systems on core {cores[0]}, load and backends on core {cores[1]}."
    )
    _write(arguments.output, facts, shown, results)
    return 0


def _result(
    title: str, scenario: Scenario, effort: Effort, arguments: argparse.Namespace, cores: list[int]
) -> Result:
    print(title, flush=True)
    # Web servers drop root privileges, and must still be able to open their folders.
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Lab(folder, cores, arguments.compiled) as lab:
            try:
                comparison = scenario(lab, effort)
            except SkippedError as reason:
                print(f"  skipped: {reason}")
                return Result(title, "", (), (), (), skipped=str(reason))
            report = partial(_print_sample, comparison.unit)
            played = tuple(run_rounds(comparison, arguments.rounds, report))
            commands = tuple(lab.commands)
    return Result(title, comparison.unit, commands, played, judge(comparison.claims, played))


def _print_sample(unit: str, name: str, sample: Sample) -> None:
    p99 = "" if sample.p99 is None else f"   p99 {number(sample.p99)} ms"
    print(
        f"  {name:34} {number(sample.rate):>8} {unit}/s {number(sample.cpu):>6} CPU µs{p99}",
        flush=True,
    )


def _write(folder: Path, facts: dict[str, str], effort: str, results: list[Result]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(page(facts, effort, results))
    (folder / "results.json").write_text(data(facts, effort, results))
    (folder / "chart.svg").write_text(chart(results))
    print(f"\nWrote results.md, results.json and chart.svg to {folder}")


def _allow_many_connections() -> None:
    """Raise the limit on open files to the maximum, also for the programs started later."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=_positive, default=5, help="the number of rounds")
    parser.add_argument("--seconds", type=_positive, default=2, help="the duration of each run")
    parser.add_argument(
        "--megabytes", type=_positive, default=512, help="the size of large bodies, in megabytes"
    )
    names = [scenario.__name__ for scenario in SCENARIOS.values()]
    parser.add_argument("--only", default="", choices=names, help="run only one comparison")
    parser.add_argument(
        "--compiled", type=Path, metavar="FOLDER", help="the folder that `make compiled` fills"
    )
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER")
    return parser


if __name__ == "__main__":
    sys.exit(main())
