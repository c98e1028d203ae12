"""Long log lines are shortened to the size of an atomic write to a pipe."""

import json

import pytest

from gateway.observe import log

MOST = 200


@pytest.mark.parametrize("length", [*range(150, 165), 1000])
@pytest.mark.parametrize("status", [404, 4040])
def test_a_long_line_is_shortened_to_the_maximum_size(length: int, status: int) -> None:
    line = {"event": "request", "path": "/" + "x" * length, "status": status}
    whole = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    text = log.fitting(line, whole, MOST)
    assert len(text) <= MOST
    assert text.endswith(b"\n")
    assert (text == whole) == (len(whole) <= MOST)
    assert json.loads(text)["status"] == status
