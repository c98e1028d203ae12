"""`python -m gateway explain`: what would happen to a request and why, word for word."""

import shlex
import sys
from pathlib import Path

import pytest

from gateway.__main__ import main

RULES = Path(__file__).with_name("explain.yaml")
TRANSCRIPT = Path(__file__).with_name("explain.txt").read_text()
COMMANDS = [block.partition("\n") for block in TRANSCRIPT.strip().split("\n\n")[1:]]


@pytest.mark.parametrize(
    ("command", "printed"),
    [pytest.param(command.removeprefix("$ "), text, id=command) for command, _, text in COMMANDS],
)
def test_explain(
    command: str,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is refused goes to the standard error, with status 2."""
    monkeypatch.setattr(sys, "argv", ["gateway", "explain", str(RULES), *shlex.split(command)])
    status = main()
    out, error = capsys.readouterr()
    asked_well = printed.startswith(("GET", "OPTIONS", "POST", "DELETE"))
    assert (out, error) == ((f"{printed}\n", "") if asked_well else ("", f"{printed}\n"))
    assert status == (0 if asked_well else 2)
