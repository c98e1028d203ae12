"""What all tests share."""

import gc

from hypothesis import settings

# By the clock, an example fails where the machine is busy.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

# Until all tests are collected, nearly all new objects stay.
gc.disable()


def pytest_collection_finish() -> None:
    """Have no collection of garbage go over the tests themselves: a reload waits for each of them.

    Some ten thousand tests and all modules that they import are a million objects that stay.
    """
    gc.freeze()
    gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name compressed data by its argument: gzip holds the time of day (RFC 1952, 2.3.1).

    Every process that runs tests collects them for itself, and all must find the same names.
    """
    return argname if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None
