"""The time limit of a verification."""

import signal
import time

import pytest

from gateway.verify.time_limit import OutOfTimeError, check_time, end_after, interrupted_at


def test_the_time_never_expires_without_a_limit() -> None:
    check_time(end_after(None))


def test_a_time_limit_raises_an_error_only_after_its_end() -> None:
    check_time(end_after(3600))
    with pytest.raises(OutOfTimeError):
        check_time(time.monotonic() - 1)


def test_a_running_library_is_interrupted_at_the_end_of_the_limit() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(OutOfTimeError), interrupted_at(end_after(0.01)):
        time.sleep(60)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
