"""Summaries of samples."""

from benchmarks.measure import Sample, middle


def test_the_middle_has_the_median_of_each_number() -> None:
    samples = [Sample(1, 30, 0.3, 50), Sample(3, 10, 0.1, 60), Sample(2, 20, 0.2, 40)]
    assert middle(samples) == Sample(2, 20, 0.2, 50)
    latencies = [Sample(1, 1, 1, 1, p50=1, p99=each) for each in (5.0, 9.0, 7.0)]
    assert middle(latencies) == Sample(1, 1, 1, 1, p50=1, p99=7)
