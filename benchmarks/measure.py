"""Samples, claims and verdicts as plain immutable data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median

RATE, CPU, P99 = "× rate", "× CPU time", "× p99"
"""The units of ratios. High rates are good; low CPU times and p99 are good."""


class NoResultError(Exception):
    """A program did not work correctly, so its speed is not meaningful."""


@dataclass(frozen=True, slots=True)
class Load:
    """The measurements of the load generator in one run.

    Attributes:
        units: the number of completed requests, or of transferred megabytes (10⁶ bytes).
        seconds: the duration of the run.
        p50: the median latency in milliseconds; None if it was not measured.
        p99: the 99th percentile of latency in milliseconds; None if it was not measured.
    """

    units: float
    seconds: float
    p50: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one system.

    Attributes:
        rate: units per second.
        cpu: the CPU time of all processes of the system for one unit, in µs.
        busy: the CPU time as a share of one core. If it is well below 1, the system did not limit
            the rate.
        rss: the maximum resident memory of the system, in MB.
        growth: the difference of `rss` to the memory before any load, in MB.
        p50: the median latency in milliseconds; None if it was not measured.
        p99: the 99th percentile of latency in milliseconds; None if it was not measured.
    """

    rate: float
    cpu: float
    busy: float
    rss: float
    growth: float = 0.0
    p50: float | None = None
    p99: float | None = None


def middle(samples: Sequence[Sample]) -> Sample:
    """Return a sample with the median of each number of several samples."""
    found: dict[str, float] = {}
    for each in fields(Sample):
        values = [value for one in samples if (value := getattr(one, each.name)) is not None]
        if values:
            found[each.name] = median(values)
    return Sample(**found)


Round = Mapping[str, Sample]
"""The sample of every run of a comparison, by the name of the run."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A lower or upper bound for a number."""

    bound: float
    at_least: bool

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


def at_least(bound: float) -> Goal:
    return Goal(bound, at_least=True)


def at_most(bound: float) -> Goal:
    return Goal(bound, at_least=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that is computed from each round.

    Attributes:
        text: the name of the number, such as that of the run.
        value: computes the number from a round.
        unit: the unit; RATE, CPU or P99 for ratios.
        goal: the goal for the number; None without a goal.
    """

    text: str
    value: Callable[[Round], float]
    unit: str
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The number of a claim in each round."""

    text: str
    unit: str
    goal: Goal | None
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def met(self) -> bool:
        """Whether the median meets the goal; true without a goal."""
        if self.goal is None:
            return True
        above = self.median >= self.goal.bound
        return above if self.goal.at_least else self.median <= self.goal.bound


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a comparison.

    Attributes:
        title: the compared systems.
        unit: the counted unit: `request` or `MB`.
        commands: all command lines of the programs.
        rounds: the samples of each round.
        verdicts: the verdict on each claim.
        skipped: why there are no rounds; empty if there are some.
    """

    title: str
    unit: str
    commands: tuple[str, ...]
    rounds: tuple[Round, ...]
    verdicts: tuple[Verdict, ...]
    skipped: str = ""


def rate(of: str, to: str, goal: Goal | None = None, *, text: str = "") -> Claim:
    """Return a claim about the ratio of two rates, with the name `text` or `of`."""
    return Claim(text or of, lambda samples: samples[of].rate / samples[to].rate, RATE, goal)


def rate_alone(of: str, goal: Goal) -> Claim:
    """Return a claim about the rate of a run in megabytes per second."""
    return Claim(f"{of}: rate", lambda samples: samples[of].rate, "MB/s", goal)


def cpu(of: str, to: str, goal: Goal | None = None) -> Claim:
    """Return a claim about the ratio of two CPU times per unit."""
    return Claim(of, lambda samples: samples[of].cpu / samples[to].cpu, CPU, goal)


def added(of: str, to: str, goal: Goal | None = None) -> Claim:
    """Return a claim about the difference of two CPU times per unit."""
    text = f"{of}: more CPU time"
    return Claim(text, lambda samples: samples[of].cpu - samples[to].cpu, "µs", goal)


def p99(of: str, to: str, goal: Goal | None = None) -> Claim:
    """Return a claim about the ratio of two p99 latencies."""
    return Claim(of, lambda samples: _p99(samples[of]) / _p99(samples[to]), P99, goal)


def p99_alone(of: str, goal: Goal) -> Claim:
    return Claim(f"{of}: p99", lambda samples: _p99(samples[of]), "ms", goal)


def growth(of: str, goal: Goal) -> Claim:
    """Return a claim about the memory that the load adds."""
    return Claim(f"{of}: memory over rest", lambda samples: samples[of].growth, "MB", goal)


def _p99(sample: Sample) -> float:
    assert sample.p99 is not None, "this run has no latencies"
    return sample.p99
