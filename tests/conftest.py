"""Settings of all tests."""

import gc
import signal
from types import FrameType

from hypothesis import settings

# With a deadline, examples would fail on a busy machine. Each run generates other examples.
settings.register_profile("tests", deadline=None, max_examples=50)
settings.load_profile("tests")

# Until all tests are collected, almost all new objects stay in use.
gc.disable()


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # make passes on the signal that its group has received
    raise KeyboardInterrupt


# Fixtures stop the servers that they started.
signal.signal(signal.SIGTERM, _interrupt)


def pytest_collection_finish() -> None:
    """Exclude the tests themselves from garbage collection, which delays each reload.

    Ten thousand tests and their imported modules are about a million objects that stay in use.
    """
    gc.freeze()
    gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name compressed test data by its argument: gzip data contains the time (RFC 1952, 2.3.1).

    Each test process collects the tests itself, and all processes must use the same names.
    """
    return argname if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None
