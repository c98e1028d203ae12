"""How many calls something costs: the same on every machine, where times are not."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import gateway

ROOT = str(Path(gateway.__file__).parent)


def calls(run: Callable[[], object]) -> int:
    """Return how many calls the gateway makes in one that is called.

    What others call is not counted: looks for garbage may come at any time, and tools count them.
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
