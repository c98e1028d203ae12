"""Runs of several systems in turn, and the verdicts on their samples."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measure import Claim, Round, Sample, Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """The runs to compare, and the claims about them.

    Attributes:
        runs: functions that put load on one system once while the others are idle, by name.
        claims: the claims about each round; no two have the same text and unit.
        unit: the counted unit: `request` or `MB`.
        pairs: functions that put load on two systems at the same time, and return the sample of
            each by name.

    Raises:
        ValueError: two claims have the same text and unit, so tables and charts would show them
            alike.
    """

    runs: Mapping[str, Callable[[], Sample]]
    claims: Sequence[Claim]
    unit: str = "request"
    pairs: Sequence[Callable[[], Round]] = ()

    def __post_init__(self) -> None:
        for (text, unit), count in Counter((each.text, each.unit) for each in self.claims).items():
            if count > 1:
                raise ValueError(f"{count} claims are named {text!r}, {unit}")


def run_rounds(
    comparison: Comparison, count: int, report: Callable[[str, Sample], None]
) -> list[Round]:
    """Run the rounds and return their samples; `report` is called with each sample.

    The speed of a machine drifts. So numbers are compared only within a round, whose runs are
    seconds apart, and the order changes: no run is always the first, or always follows the same
    other run. The runs of a pair take place at the same time.
    """
    rounds: list[Round] = []
    for number in range(count):
        beside: dict[str, Sample] = {}
        for pair in comparison.pairs:
            for name, sample in pair().items():
                beside[name] = sample
                report(name, sample)
        samples = {}
        for name in turns(list(comparison.runs), number):
            samples[name] = comparison.runs[name]()
            report(name, samples[name])
        rounds.append({**beside, **{name: samples[name] for name in comparison.runs}})
    return rounds


def turns(names: Sequence[str], number: int) -> Sequence[str]:
    """Return the order of a round: reversed in every second round, rotated after every two."""
    start = number // 2 % max(len(names), 1)
    order = [*names[start:], *names[:start]]
    return order[::-1] if number % 2 else order


def judge(claims: Sequence[Claim], rounds: Sequence[Round]) -> tuple[Verdict, ...]:
    """Return the verdict on each claim over all rounds."""
    return tuple(
        Verdict(claim.text, claim.unit, claim.goal, tuple(claim.value(each) for each in rounds))
        for claim in claims
    )
