"""What all tests share."""

import gc

from hypothesis import settings

# By the clock, an example fails where the machine is busy.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


def pytest_collection_finish() -> None:
    """Have no collection of garbage go over the tests themselves: a reload waits for each of them.

    Some ten thousand tests and all modules that they import are a million objects that stay.
    """
    gc.freeze()
