"""A time limit passes once, and without seconds never."""

import time

import pytest

from gateway.verify.time_limit import NO_LIMIT, OutOfTimeError, TimeLimit


def test_no_limit() -> None:
    NO_LIMIT.check()
    TimeLimit.of(None).check()


def test_a_limit() -> None:
    TimeLimit.of(3600).check()
    with pytest.raises(OutOfTimeError):
        TimeLimit(time.monotonic() - 1).check()
