"""Token buckets in memory that all processes of a gateway share.

The kernel spreads the connections of a client over the workers, so the workers share the buckets. A
bucket is one number: the time at which it is full again (the generic cell rate algorithm, ITU-T
I.371). No lock is needed: if two workers write a bucket at the same moment, one request too many is
admitted.
"""

import mmap
import os
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from tempfile import TemporaryFile
from typing import Final, NamedTuple

SLOTS: Final = 64 * 1024
"""The maximum number of stored buckets, for all limits and keys. Full buckets need not be stored.
Beyond the maximum, the bucket that is full first is dropped, which makes it full at once."""
_BYTES: Final = SLOTS * 16  # 8 for the bucket's number, and 8 for the time at which it is full
_PROBES: Final = 8
# The seconds of debt that a bucket may have beyond its tokens, because of other replicas.
_MOST_DEBT: Final = 5.0
_ROUNDING: Final = 1e-6


class Bucket(NamedTuple):
    """The buckets of a limit: its name, the seconds in which a token is added, and the size.

    If `shared` is true, all replicas of a fleet take tokens from the bucket.
    """

    name: str
    seconds: float
    tokens: int
    shared: bool = False


class Admission(NamedTuple):
    """The tokens in a bucket after a request, and the seconds until it is full.

    `wait` is the number of seconds until there is a token; 0 if there was one for the request.
    """

    remaining: int
    reset: float
    wait: float


def shared_memory() -> int:
    """Return the descriptor of new memory for `TokenBuckets`, which child processes can inherit."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("token buckets")
    else:  # macOS
        with TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _BYTES)
    return descriptor


@lru_cache(maxsize=4096)
def bucket_number(limit: str, key: str) -> int:
    """Return the number of a bucket, which is the same in all replicas of a fleet."""
    text = f"{limit}\0{key}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest()) or 1


class TokenBuckets:
    def __init__(self, descriptor: int) -> None:
        memory = memoryview(mmap.mmap(descriptor, _BYTES))
        self._numbers, self._times = memory.cast("Q"), memory.cast("d")

    def take(self, wanted: Sequence[tuple[Bucket, str]], now: float) -> list[Admission]:
        """Take a token from each bucket, or from none if one of them is empty.

        Each bucket has a key, such as the name of a client. `now` is by time.monotonic, the clock
        that all processes share.
        """
        numbers, times = self._numbers, self._times
        found: list[Admission] = []
        taken: list[tuple[int, float]] = []
        for (name, seconds, tokens, shared), key in wanted:
            number = bucket_number(name, key)
            place = 2 * (number % SLOTS) + 1
            if numbers[place - 1] != number:
                place = self._place(number, now)
            before, whole = times[place] - now, seconds * tokens
            if before <= 0:
                before = 0.0
            elif before > whole:  # after a reload with a higher rate, or by debt
                before = min(before, whole + _MOST_DEBT if shared else whole)
                times[place] = now + before
            after = before + seconds
            if after - whole > _ROUNDING * seconds:
                found.append(Admission(0, before, after - whole))
            else:
                remaining = int((whole - after) / seconds + _ROUNDING)
                found.append(Admission(remaining, after, 0.0))
                taken.append((place, now + after))
        if len(taken) == len(found):
            for place, full in taken:
                times[place] = full
            return found
        return [
            each if each.wait else Admission(each.remaining + 1, each.reset - bucket.seconds, 0.0)
            for each, (bucket, _) in zip(found, wanted, strict=True)
        ]

    def add_debt(self, bucket: Bucket, number: int, tokens: int, now: float) -> None:
        """Take tokens for requests that another replica has admitted, even from an empty bucket."""
        place = self._place(number, now)
        self._times[place] = max(self._times[place], now) + bucket.seconds * tokens

    def _place(self, number: int, now: float) -> int:
        """Return the index of a bucket's time; a new bucket replaces the one that is full first."""
        numbers, times = self._numbers, self._times
        place = best = 2 * (number % SLOTS) + 1
        earliest = times[place]
        for _ in range(_PROBES):
            if numbers[place - 1] == number:
                return place
            if times[place] < earliest:
                best, earliest = place, times[place]
            place = (place + 2) % (2 * SLOTS)
        numbers[best - 1], times[best] = number, now
        return best
