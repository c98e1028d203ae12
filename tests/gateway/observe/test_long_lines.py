"""Long lines of the log: shortened to what the system keeps together in one write to a pipe."""

import json

import pytest

from gateway.observe import log

MOST = 200


@pytest.mark.parametrize("length", [*range(150, 165), 1000])
@pytest.mark.parametrize("status", [404, 4040])
def test_a_line_has_no_more_bytes_than_one_write(length: int, status: int) -> None:
    line = {"event": "request", "path": "/" + "x" * length, "status": status}
    whole = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    text = log.fitting(line, whole, MOST)
    assert len(text) <= MOST
    assert text.endswith(b"\n")
    assert (text == whole) == (len(whole) <= MOST)
    assert json.loads(text)["status"] == status
