"""Runs that take turns, and what is made of their samples."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measure import Claim, Round, Sample, Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to be played.

    Attributes:
        runs: by name, what puts load on a system once, while the others wait.
        claims: what is wanted of each round; no two have the same text and unit.
        unit: what is counted: `request` or `MB`.
        pairs: what puts load on two systems at once, and returns the sample of each by its name.

    Raises:
        ValueError: two claims could not be told apart in a table or a chart.
    """

    runs: Mapping[str, Callable[[], Sample]]
    claims: Sequence[Claim]
    unit: str = "request"
    pairs: Sequence[Callable[[], Round]] = ()

    def __post_init__(self) -> None:
        for (text, unit), count in Counter((each.text, each.unit) for each in self.claims).items():
            if count > 1:
                raise ValueError(f"{count} claims are named {text!r}, {unit}")


def play(comparison: Comparison, count: int, told: Callable[[str, Sample], None]) -> list[Round]:
    """Play rounds and return their samples; `told` hears of every sample as it comes.

    A machine's speed drifts. Numbers are therefore compared within a round only, where they lie
    seconds apart, and no run is always the first or always behind the same other. Those of a pair
    are of the same moments.
    """
    rounds: list[Round] = []
    for number in range(count):
        beside: dict[str, Sample] = {}
        for pair in comparison.pairs:
            for name, sample in pair().items():
                beside[name] = sample
                told(name, sample)
        samples = {}
        for name in turns(list(comparison.runs), number):
            samples[name] = comparison.runs[name]()
            told(name, samples[name])
        rounds.append({**beside, **{name: samples[name] for name in comparison.runs}})
    return rounds


def turns(names: Sequence[str], number: int) -> Sequence[str]:
    """Return the order of a round: of each two, one goes backwards; the next two start one on."""
    start = number // 2 % max(len(names), 1)
    order = [*names[start:], *names[:start]]
    return order[::-1] if number % 2 else order


def judge(claims: Sequence[Claim], rounds: Sequence[Round]) -> tuple[Verdict, ...]:
    """Return what the rounds say of every claim."""
    return tuple(
        Verdict(claim.text, claim.unit, claim.goal, tuple(claim.value(each) for each in rounds))
        for claim in claims
    )
