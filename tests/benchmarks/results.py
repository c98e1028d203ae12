"""Invented results for the tests of the report and the chart."""

from benchmarks.comparison import judge
from benchmarks.measure import Result, Round, Sample, at_least, at_most, p99_alone, rate

OURS, THEIRS = "gateway, by <path>", "Envoy"
ROUNDS: tuple[Round, ...] = (
    {OURS: Sample(1200, 30, 0.99, 50, p50=1, p99=2), THEIRS: Sample(1000, 40, 0.9, 70)},
    {OURS: Sample(2600, 32, 0.98, 51, p50=1, p99=60), THEIRS: Sample(2000, 41, 0.9, 71)},
    {OURS: Sample(800, 31, 0.97, 52, p50=1, p99=70), THEIRS: Sample(1000, 42, 0.9, 72)},
)
CLAIMS = (rate(OURS, THEIRS, at_least(1.0)), p99_alone(OURS, at_most(50)))
ROUTED = Result("Routed, against Envoy", "request", ("wrk -c32",), ROUNDS, judge(CLAIMS, ROUNDS))
SKIPPED = Result("Two workers", "", (), (), (), skipped="needs a third core")
