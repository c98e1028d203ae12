"""Token buckets: the admitted rate and burst, the shared memory, and displaced buckets."""

import os
from math import ceil

import pytest
from hypothesis import given, strategies

from gateway.access.token_buckets import SLOTS, Admission, Bucket, TokenBuckets, shared_memory
from gateway.access.token_buckets import bucket_number as number

MINUTE = Bucket("minute", 6.0, 10)
"""10 requests in a minute, at most 10 at once."""


@pytest.fixture
def buckets() -> TokenBuckets:
    return TokenBuckets(shared_memory())


def take(buckets: TokenBuckets, bucket: Bucket, now: float, key: str = "acme") -> Admission:
    (admission,) = buckets.take([(bucket, key)], now)
    return admission


class Model:
    """A bucket as a number of tokens that grows with time."""

    def __init__(self, seconds: float, tokens: int) -> None:
        self.seconds, self.most, self.tokens, self.at = seconds, tokens, float(tokens), 0.0

    def take(self, now: float) -> bool:
        self.tokens = min(self.most, self.tokens + (now - self.at) / self.seconds)
        self.at = now
        admitted = self.tokens >= 1 - 1e-6
        self.tokens -= admitted
        return admitted


@given(
    strategies.floats(0.001, 1000),
    strategies.integers(1, 50),
    strategies.lists(strategies.floats(0, 3), max_size=80),
)
def test_a_bucket_admits_the_requests_that_a_count_of_tokens_admits(
    seconds: float, tokens: int, pauses: list[float]
) -> None:
    buckets, model, now = TokenBuckets(shared_memory()), Model(seconds, tokens), 0.0
    for pause in pauses:
        now += pause * seconds
        found = take(buckets, Bucket("limit", seconds, tokens), now)
        # The request at the very moment of a new token is admitted by one of the two only.
        if abs(model.tokens + (now - model.at) / seconds - 1) > 1e-4:
            assert (not found.wait) is model.take(now)
            assert found.remaining == pytest.approx(model.tokens, abs=1.001)
            assert found.reset == pytest.approx(
                (tokens - model.tokens) * seconds, abs=0.001 * seconds
            )
        else:
            model.take(now)
            return


def test_a_full_bucket_admits_a_burst_and_then_the_rate(buckets: TokenBuckets) -> None:
    found = [take(buckets, MINUTE, 100.0) for _ in range(11)]
    assert [each.remaining for each in found] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]
    assert found[9] == Admission(0, 60.0, 0.0)
    assert found[10] == Admission(0, 60.0, 6.0)
    assert [bool(take(buckets, MINUTE, 100.0 + at).wait) for at in (5.9, 6, 11.9, 12)] == [
        *(True, False, True, False)
    ]
    assert take(buckets, MINUTE, 1000.0).remaining == 9


def test_a_refused_request_takes_no_token_of_any_bucket(buckets: TokenBuckets) -> None:
    once = Bucket("once", 60.0, 1)
    assert [each.wait for each in buckets.take([(MINUTE, "a"), (once, "a")], 5.0)] == [0, 0]
    refused = buckets.take([(MINUTE, "a"), (once, "a")], 5.0)
    assert refused == [Admission(9, 6.0, 0.0), Admission(0, 60.0, 60.0)]
    assert take(buckets, MINUTE, 5.0, "a").remaining == 8


def test_processes_share_buckets_by_the_descriptor_of_the_memory() -> None:
    memory = shared_memory()
    buckets = TokenBuckets(memory)
    child = os.fork()
    if not child:
        for _ in range(4):
            take(TokenBuckets(memory), MINUTE, 1.0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert take(buckets, MINUTE, 1.0).remaining == 5


@pytest.mark.parametrize(
    ("after", "wait"),
    [
        (Bucket("minute", 0.1, 5), 0.1),  # a higher rate
        (Bucket("minute", 600.0, 1), 60.0),  # a lower one
        (MINUTE, 6.0),
    ],
)
def test_a_changed_rate_applies_at_once_to_an_empty_bucket(
    buckets: TokenBuckets, after: Bucket, wait: float
) -> None:
    for _ in range(10):
        take(buckets, MINUTE, 50.0)
    assert take(buckets, after, 50.0).wait == pytest.approx(wait)
    assert not take(buckets, after, 50.0 + wait).wait


def test_debts_of_other_replicas_delay_requests(buckets: TokenBuckets) -> None:
    shared = Bucket("second", 0.1, 2, shared=True)
    assert take(buckets, shared, 9.0).remaining == 1
    buckets.add_debt(shared, number("second", "acme"), 11, 9.0)
    assert take(buckets, shared, 9.0).wait == pytest.approx(1.1)
    assert not take(buckets, shared, 10.1).wait
    buckets.add_debt(shared, number("second", "other"), 1_000_000, 9.0)
    assert take(buckets, shared, 9.0, "other").wait <= 5.1


def test_a_flood_of_keys_displaces_the_buckets_that_are_full_first(buckets: TokenBuckets) -> None:
    """Empty buckets of honest clients stay empty while each address of an attacker sends once."""
    honest = [f"honest {index}" for index in range(100)]
    for key in honest:
        for _ in range(10):
            take(buckets, MINUTE, 1.0, key)
    for index in range(2 * SLOTS):
        take(buckets, MINUTE, 1.0, f"flood {index}")
    still = sum(bool(take(buckets, MINUTE, 1.0, key).wait) for key in honest)
    assert still == len(honest)
    assert ceil(take(buckets, MINUTE, 1.0, "new").reset) == 6
