"""Always-valid tests of whether the new route fails more often than the old one.

An e-value is a number whose mean is at most 1 as long as the new route is within its limit. By
Ville's inequality, it ever exceeds 1,000 with a probability of at most 1 in 1,000, however often it
is examined (Ramdas, Grünwald, Vovk and Shafer 2023, "Game-theoretic statistics and safe
anytime-valid inference", Statistical Science 38:576-601). So the gates can be judged every second.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import exp, inf, log, log1p
from operator import add
from typing import NamedTuple

# The supposed shares of otherwise good requests that the new route makes fail. An e-value is the
# mean over these suppositions.
_EXCESSES = (0.02, 0.06, 0.2, 0.5, 0.95)
# The amounts by which both routes may fail more often than usual. An e-value is the minimum over
# these amounts.
_SHIFTS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 0.7)
# The largest increase of the logarithm in one block without requests on the old route: an outage of
# both routes cannot be excluded, so a fault has to last for several blocks.
_ALONE = 6.0
# The largest increase of the logarithm in one block for `any` units, since a short interruption
# makes one request of many clients fail.
_ANY = 3.0
# The largest logarithm. It bounds the number of good units after which a fault that has ended is
# forgotten.
_LARGEST = 21.0
_HIGHEST = 0.9995
_START = -log(len(_EXCESSES))
NO_SHIFT = [0.0, *[inf] * (len(_SHIFTS) - 1)]
"""Penalties for a usual share that is known exactly."""


class Units(NamedTuple):
    """Several equal units. A unit contains the requests of one client in one block of 10 seconds.

    Attributes:
        number: How many units are equal.
        bad: The failed share of the requests of the unit. For `any` units, 1 if a request failed,
            otherwise 0.
        usual: The usual share of failed requests of the client, above 0.
        size: The number of requests of an `any` unit, otherwise 1.
    """

    number: int
    bad: float
    usual: float
    size: int = 1


class EProcess:
    """The e-value of one measure in one group of requests, since the percentage was set.

    The fault may begin in any block. The e-value is a weighted mean over the blocks in which it may
    have begun.
    """

    __slots__ = ("_logs",)

    def __init__(self) -> None:
        # The logarithm for each excess and each shift.
        self._logs = [[-inf] * len(_SHIFTS) for _ in _EXCESSES]

    def log_value(
        self,
        block: int,
        new: Sequence[Units],
        old: Sequence[Units],
        margin: float,
        penalties: Sequence[float],
        *,
        keep: bool,
    ) -> float:
        """Return the logarithm of the e-value, with the units of the current block.

        Args:
            block: The number of completed blocks.
            old: The units on the old route in the same block; empty without any.
            margin: The share by which the new route may fail more often.
            penalties: The result of `penalties`.
            keep: Whether the block is complete, so that the next block continues from it.
        """
        logs = self._logs
        if new:
            start = _START - log((block + 1) * (block + 2))
            gains = _sums(new, margin)
            if old:  # the shift of each block is unknown, so the worst shift counts
                controls = _control_sums(old)
                gains = [[min(map(add, row, controls))] * len(_SHIFTS) for row in gains]
            is_any = any(units.size > 1 for units in new)
            most = _ANY if is_any else inf if old or penalties is NO_SHIFT else _ALONE
            logs = [
                [
                    min(_plus(before, start) + min(gain, most), _LARGEST)
                    for before, gain in zip(*rows, strict=True)
                ]
                for rows in zip(self._logs, gains, strict=True)
            ]
        if keep:
            self._logs = logs
        columns = zip(*logs, strict=True)
        return min(
            log_sum(column) + penalty for column, penalty in zip(columns, penalties, strict=True)
        )


def penalties(units: float, usual: float) -> list[float]:
    """Return how strongly the history of the old route contradicts each possible shift.

    Args:
        units: The number of units in the history.
        usual: The share of failed requests in the history, above 0 and below 1.
    """
    return [units * _divergence(usual, min(usual + shift, _HIGHEST)) for shift in _SHIFTS]


def log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of the sum of numbers, which are given as logarithms."""
    most = max(logs, default=-inf)
    return most if most == -inf else most + log(sum(exp(each - most) for each in logs))


def _plus(log_one: float, log_other: float) -> float:
    low, high = sorted((log_one, log_other))
    return high + log1p(exp(low - high))


def _sums(units: Sequence[Units], margin: float) -> list[list[float]]:
    """Return the log likelihood ratios of each excess and shift."""
    found = [[0.0] * len(_SHIFTS) for _ in _EXCESSES]
    for number, bad, usual, size in units:
        failed, good = number * bad, number * (1 - bad)
        for place, (of_failed, of_good) in enumerate(_gains(usual, size, margin)):
            more = good * of_good
            found[place] = [
                known + failed * ratio + more
                for known, ratio in zip(found[place], of_failed, strict=True)
            ]
    return found


def _control_sums(units: Sequence[Units]) -> list[float]:
    """Return the log likelihood ratios of each shift on the old route."""
    found = [0.0] * len(_SHIFTS)
    for number, bad, usual, size in units:
        failed, good = number * bad, number * (1 - bad)
        ratios = _controls(usual, size)
        found = [
            known + failed * of_failed + good * of_good
            for known, (of_failed, of_good) in zip(found, ratios, strict=True)
        ]
    return found


@lru_cache(4096)
def _gains(usual: float, size: int, margin: float) -> list[tuple[list[float], float]]:
    """Return, for each excess, the ratios of a failed unit by shift, and that of a good unit."""
    shares = [_share(usual + shift + margin, size) for shift in _SHIFTS]
    return [
        ([log((share + excess * (1 - share)) / share) for share in shares], log(1 - excess))
        for excess in _EXCESSES
    ]


@lru_cache(4096)
def _controls(usual: float, size: int) -> list[tuple[float, float]]:
    """Return the ratios of a failed and of a good unit, for each shift."""
    share, shifted = _share(usual, size), [_share(usual + shift, size) for shift in _SHIFTS]
    return [(log(share / each), log((1 - share) / (1 - each))) for each in shifted]


def _share(share: float, size: int) -> float:
    share = min(share, _HIGHEST)
    return share if size == 1 else min(1 - (1 - share) ** size, _HIGHEST)


def _divergence(share: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of two shares between 0 and 1."""
    return share * log(share / other) + (1 - share) * log((1 - share) / (1 - other))
