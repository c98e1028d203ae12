"""The token bucket that limits samples."""

from gateway.verify.live.sample_budget import SampleBudget


def test_the_bucket_holds_at_most_the_tokens_of_one_second() -> None:
    budget = SampleBudget(3)
    for left in (True, True, True, False):
        assert budget.has(1, 10.0) is left
        budget.take(left)
    assert not budget.has(1, 10.3)
    assert budget.has(1, 10.4)
    assert budget.has(3, 100.0)
    assert not budget.has(3.1, 200.0)
