"""The time limit of a verification."""

import time

import pytest

from gateway.verify.time_limit import OutOfTimeError, check_time, end_after


def test_the_time_never_expires_without_a_limit() -> None:
    check_time(end_after(None))


def test_a_time_limit_raises_an_error_only_after_its_end() -> None:
    check_time(end_after(3600))
    with pytest.raises(OutOfTimeError):
        check_time(time.monotonic() - 1)
