"""Counts function calls, whose number is the same on every machine, unlike times."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import gateway

ROOT = str(Path(gateway.__file__).parent)


def calls(run: Callable[[], object]) -> int:
    """Return the number of calls within the gateway's code during a call of `run`.

    Calls by other code do not count, since garbage collection can occur at any time, and tools add
    calls of their own.
    """
    counted = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call") and frame.f_code.co_filename.startswith(ROOT)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return counted
