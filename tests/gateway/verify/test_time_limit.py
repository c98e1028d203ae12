"""The time limit of a verification."""

import time

import pytest

from gateway.verify.time_limit import OutOfTimeError, check_time, end_after


def test_a_missing_limit_never_raises() -> None:
    check_time(end_after(None))


def test_a_limit_raises_only_after_its_end() -> None:
    check_time(end_after(3600))
    with pytest.raises(OutOfTimeError):
        check_time(time.monotonic() - 1)
