"""The exact output of `convert` and `explain --body`, compared with convert.txt."""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.__main__ import main
from tests.gateway.kit import DEADLINE

HERE = Path(__file__).parent
RULES = str(HERE / "convert.yaml")
BLOCKS = [block.partition("\n") for block in (HERE / "convert.txt").read_text().split("\n\n$ ")[1:]]


class Input(io.StringIO):
    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.buffer = io.BytesIO(content)  # type: ignore[misc]  # like the real sys.stdin


@pytest.mark.parametrize(
    ("command", "printed"), [pytest.param(command, text, id=command) for command, _, text in BLOCKS]
)
def test_convert_prints_the_output_in_convert_txt(
    command: str,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Only the other commands of a pipeline run in a shell."""
    stages = command.split(" | ")
    number = next(i for i, one in enumerate(stages) if one.startswith(("convert ", "explain ")))
    given = _run(" | ".join(stages[:number]), b"") if number else b""
    name, *words = shlex.split(stages[number])
    monkeypatch.setattr(sys, "argv", ["gateway", name, RULES, *words])
    monkeypatch.setattr(sys, "stdin", Input(given))
    status = main()
    out, error = capfdbinary.readouterr()
    if stages[number + 1 :]:
        out = _run(stages[number + 1], out)
    text = re.sub(r"at \w+\.py:\d+", "at FILE:LINE", (out + error).decode())
    shown = text + (f"[{status}]\n" if status else "")
    assert shown.rstrip("\n") == printed.rstrip("\n")
    # An unchanged body goes to the standard output, the remark about it to the standard error.
    assert (
        name == "explain" or not out if status else not error or error.startswith(b"the body stays")
    )


def _run(command: str, given: bytes) -> bytes:
    done = subprocess.run(
        ["bash", "-c", command], input=given, capture_output=True, check=True, timeout=DEADLINE
    )
    return done.stdout
