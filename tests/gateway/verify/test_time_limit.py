"""A time limit passes once, and without seconds never."""

import time

import pytest

from gateway.verify.time_limit import OutOfTimeError, check_time, end_after


def test_without_a_limit_the_time_never_passes() -> None:
    check_time(end_after(None))


def test_the_time_of_a_limit_passes() -> None:
    check_time(end_after(3600))
    with pytest.raises(OutOfTimeError):
        check_time(time.monotonic() - 1)
