"""A time limit passes once, and without seconds never."""

import time

import pytest

from gateway.verify.time_limit import NO_LIMIT, OutOfTimeError, TimeLimit


def test_without_a_limit_the_time_never_passes() -> None:
    NO_LIMIT.check()
    TimeLimit.of(None).check()


def test_the_time_of_a_limit_passes() -> None:
    TimeLimit.of(3600).check()
    with pytest.raises(OutOfTimeError):
        TimeLimit(time.monotonic() - 1).check()
