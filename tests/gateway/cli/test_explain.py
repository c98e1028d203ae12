"""The exact output of `explain`, compared with explain*.txt."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from gateway.__main__ import main

RULES = sorted(Path(__file__).parent.glob("explain*.yaml"))
COMMANDS = [
    (rules, *block.partition("\n"))
    for rules in RULES
    for block in rules.with_suffix(".txt").read_text().strip().split("\n\n")[1:]
]


@pytest.mark.parametrize(
    ("rules", "command", "printed"),
    [
        pytest.param(rules, command.removeprefix("$ "), text, id=f"{rules.stem}: {command}")
        for rules, command, _, text in COMMANDS
    ],
)
def test_explain_prints_the_expected_output(
    rules: Path,
    command: str,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["gateway", "explain", str(rules), *shlex.split(command)])
    status = main()
    out, error = capsys.readouterr()
    asked_well = printed.startswith(("GET", "OPTIONS", "POST", "DELETE"))
    assert (out, error) == ((f"{printed}\n", "") if asked_well else ("", f"{printed}\n"))
    is_refused = re.search("^  answer +[45]", printed, re.MULTILINE) is not None
    assert status == (is_refused if asked_well else 2)
