"""What is measured, and what is claimed of it: plain frozen data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median

RATE, CPU, P99 = "× rate", "× CPU time", "× p99"
"""The units of ratios. A rate should be high; CPU time of a unit, and p99, low."""


class NoResultError(Exception):
    """Something does not do what it has to, so how fast it does is of no interest."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the side of the load saw in one run.

    Attributes:
        units: how many requests were answered, or megabytes (10⁶ bytes) moved.
        seconds: how long that took.
        p50: the median latency in milliseconds, where there is one.
        p99: the 99th percentile of latency in milliseconds, where there is one.
    """

    units: float
    seconds: float
    p50: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one system.

    Attributes:
        rate: units a second.
        cpu: CPU time of all processes of the system, in µs a unit.
        busy: the same as a share of one core; well below 1, the system was not what held the rate.
        rss: resident memory of the system at its highest, in MB.
        growth: by how much that is above what it was before there was any load, in MB.
        p50: the median latency in milliseconds, where there is one.
        p99: the 99th percentile of latency in milliseconds, where there is one.
    """

    rate: float
    cpu: float
    busy: float
    rss: float
    growth: float = 0.0
    p50: float | None = None
    p99: float | None = None


def middle(samples: Sequence[Sample]) -> Sample:
    """Return the median of each number of several samples of the same kind."""
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
    """What a number should be."""

    bound: float
    at_least: bool

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


def at_least(bound: float) -> Goal:
    """Return the goal of a number that should be large."""
    return Goal(bound, at_least=True)


def at_most(bound: float) -> Goal:
    """Return the goal of a number that should be small."""
    return Goal(bound, at_least=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that a round gives.

    Attributes:
        text: what it is about.
        value: takes it from a round.
        unit: what it counts; ratios are RATE, CPU or P99.
        goal: what it should be, if anything.
    """

    text: str
    value: Callable[[Round], float]
    unit: str
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim's number in every round."""

    text: str
    unit: str
    goal: Goal | None
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median over the rounds."""
        return median(self.values)

    @property
    def met(self) -> bool:
        """Whether the median is what it should be; true without a goal."""
        if self.goal is None:
            return True
        above = self.median >= self.goal.bound
        return above if self.goal.at_least else self.median <= self.goal.bound


@dataclass(frozen=True, slots=True)
class Result:
    """A comparison that was played.

    Attributes:
        title: what was compared with what.
        unit: what is counted: `request` or `MB`.
        commands: every command line that took part.
        rounds: the samples, round by round.
        verdicts: what they say.
        skipped: why there are no rounds, if there are none.
    """

    title: str
    unit: str
    commands: tuple[str, ...]
    rounds: tuple[Round, ...]
    verdicts: tuple[Verdict, ...]
    skipped: str = ""


def rate(of: str, to: str, goal: Goal | None = None, *, text: str = "") -> Claim:
    """Claim the rate of one run as a multiple of another's, named `of` or as `text` says."""
    return Claim(text or of, lambda samples: samples[of].rate / samples[to].rate, RATE, goal)


def rate_alone(of: str, goal: Goal) -> Claim:
    """Claim the rate of a run whose unit is a megabyte."""
    return Claim(f"{of}: rate", lambda samples: samples[of].rate, "MB/s", goal)


def cpu(of: str, to: str, goal: Goal | None = None) -> Claim:
    """Claim the CPU time a unit of one run as a multiple of another's."""
    return Claim(of, lambda samples: samples[of].cpu / samples[to].cpu, CPU, goal)


def added(of: str, to: str, goal: Goal | None = None) -> Claim:
    """Claim the CPU time that a unit of one run takes beyond another's."""
    text = f"{of}: more CPU time"
    return Claim(text, lambda samples: samples[of].cpu - samples[to].cpu, "µs", goal)


def p99(of: str, to: str, goal: Goal | None = None) -> Claim:
    """Claim the p99 of one run as a multiple of another's."""
    return Claim(of, lambda samples: _p99(samples[of]) / _p99(samples[to]), P99, goal)


def p99_alone(of: str, goal: Goal) -> Claim:
    """Claim the p99 of a run."""
    return Claim(f"{of}: p99", lambda samples: _p99(samples[of]), "ms", goal)


def growth(of: str, goal: Goal) -> Claim:
    """Claim the memory of a run over that at rest."""
    return Claim(f"{of}: memory over rest", lambda samples: samples[of].growth, "MB", goal)


def _p99(sample: Sample) -> float:
    assert sample.p99 is not None, "this run has no latencies"
    return sample.p99
