"""Executes documents: runs their commands, applies their edits, and compares the output.

In a block marked `console`, a line `$ command` is executed in bash; the lines below it are the
expected output on both streams. A block marked `diff` is an edit of gateway.yaml: lines that start
with a space or a minus sign occur there once, and are replaced by the lines that start with a space
or a plus sign.

The output must be equal, except for values that differ between runs:

- 127.0.0.1 with a port: programs listen on free ports here.
- Counts of gates: `4 of 7 requests (57%)`.
- Times such as 2026-11-21T15:13:33Z, and numbers of responses, requests and the like: see
  `_VARYING`.
- Ids of requests, and hashes of configurations.
- Numbers in a table row that ends with a time: the width must be equal, the digits may differ.
- Comparisons that a busy machine skipped.

Commands that show counts or progress are repeated until the output is as shown: see `_AGAIN`.
After an edit, the next command waits until every running gateway has loaded the edited file.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import psutil

from tests.command_line import run_here
from tests.fork_server import fork_server
from tests.gateway.kit import DEADLINE, ROOT, held_port, wait_for

_BLOCK = re.compile(r"^```(console|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_COUNTED = re.compile(rf"(?<=  ) *\d+(?=  .*{_TIME}$)", re.MULTILINE)
_VARYING = (
    (re.compile(r"\b\d+ of \d+ requests \([\d.]+%\)"), "N of N requests (N%)"),
    (re.compile(r"\r|; not compared: .*"), ""),
    (re.compile(r"\b[\d.]+(?= (answers|responses|differ|requests|more|failed|times|ms|s)\b)"), "N"),
    (re.compile(r", N ms on average"), ""),
    (re.compile(r"\b([0-9a-f]{12}|[0-9a-f]{32})\b"), "0" * 12),
    (re.compile(_TIME), "0000-00-00T00:00:00Z"),
)
# A command of the gateway that needs no shell. `verify` imports modules that warn at import.
_ALONE = re.compile(r"\.venv/bin/python -m gateway ((?!verify)[^|;&$<>()]+)")
_IN_BACKGROUND = re.compile(r" & |&$", re.MULTILINE)
_AGAIN = re.compile(r"-m gateway (usage|shadow|cutover show|fleet show)\b|/readyz|/audit")


@dataclass(frozen=True)
class Command:
    typed: str
    shown: str


@dataclass(frozen=True)
class Edit:
    before: str
    after: str


def steps(text: str) -> Iterator[Command | Edit]:
    for kind, block in _BLOCK.findall(text):
        if kind == "console":
            yield from (Command(*found) for found in _COMMAND.findall(block))
        else:
            lines = block.splitlines(keepends=True)
            yield Edit(*("".join(line[1:] for line in lines if line[0] in f" {s}") for s in "-+"))


def section(text: str, heading: str) -> str:
    return text.split(f"\n## {heading}\n")[1].partition("\n## ")[0]


@dataclass(frozen=True)
class Reader:
    """Executes documents in a folder like a clone.

    Args:
        folder: contains gateway.yaml; each gateway logs to a file there with its name and `.log`.
        addresses: the actual address for each address that documents name.
    """

    folder: Path
    variables: Mapping[str, str]
    addresses: Mapping[str, str]

    def follow(self, text: str) -> None:
        for step in steps(text):
            before = self._rules.read_text()
            known = {name: len(said) for name, said in self._verdicts().items()}
            match step:
                case Command():
                    self._type(step)
                case Edit():
                    self._edit(step)
            if self._rules.read_text() != before:
                wait_for(lambda: self._all_have_said(known))  # noqa: B023  # it is called at once
                for said in self._verdicts().values():
                    assert said[-1]["event"] == "config_loaded", said[-1]

    @property
    def _rules(self) -> Path:
        return self.folder / "gateway.yaml"

    def _all_have_said(self, known: Mapping[str, int]) -> bool:
        return all(len(said) > known.get(name, 0) for name, said in self._verdicts().items())

    def _verdicts(self) -> dict[str, list[dict[str, Any]]]:
        """Return the log events of each running gateway about its rules, by the name of its log."""
        found: dict[str, list[dict[str, Any]]] = {}
        for log in self.folder.glob("*.log"):
            lines = log.read_bytes().splitlines(keepends=True)
            # An incomplete last line is skipped; other programs log lines that are not JSON.
            whole = [line for line in lines if line.startswith(b"{") and line.endswith(b"\n")]
            entries = [json.loads(line) for line in whole]
            if any("admin" in entry for entry in entries) and _runs(log.with_suffix(".pid")):
                found[log.name] = [one for one in entries if one["event"].startswith("config_")]
        return found

    def _edit(self, step: Edit) -> None:
        text = f"\n{self._rules.read_text()}"
        assert text.count(f"\n{step.before}") == 1, step.before
        fresh = self.folder / "gateway.yaml.new"
        fresh.write_text(text.replace(f"\n{step.before}", f"\n{step.after}")[1:])
        fresh.rename(self._rules)

    def _type(self, step: Command) -> None:
        shown, deadline = _same(step.shown), time.monotonic() + DEADLINE
        printed = _same(self._run(step.typed))
        while printed != shown and _AGAIN.search(step.typed) and time.monotonic() < deadline:
            printed = _same(self._run(step.typed))
        assert printed == shown, f"{step.typed} prints:\n{printed}"

    def _run(self, command: str) -> str:
        for address, actual in self.addresses.items():
            command = command.replace(address, actual)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **self.variables}
        if alone := _ALONE.fullmatch(command):
            out = StringIO()
            run_here(alone[1], self.folder, environment, out, out)
            printed = out.getvalue()
        else:
            printed = self._run_in_a_shell(command, environment)
        for address, actual in self.addresses.items():
            printed = printed.replace(actual, address)
        return printed

    def _run_in_a_shell(self, command: str, environment: Mapping[str, str]) -> str:
        # Background programs are ended by their process id, which a file contains.
        forked = fork_server().python
        python = sys.executable if _IN_BACKGROUND.search(command) else forked
        return subprocess.run(
            ["bash", "-c", command.replace(".venv/bin/python", shlex.quote(python))],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=5 * DEADLINE,
        ).stdout


PORTS = {
    "127.0.0.1:8001": "BACKEND_V1_PORT",
    "127.0.0.1:8002": "BACKEND_V2_PORT",
    "127.0.0.1:8080": "GATEWAY_PORT",
    "127.0.0.1:8090": "GATEWAY_ADMIN_PORT",
}


@contextmanager
def beginner(folder: Path) -> Iterator[Reader]:
    (folder / "gateway.yaml").write_text((ROOT / "gateway.yaml").read_text())
    with ExitStack() as stack:
        ports = {variable: str(held_port(stack)) for variable in PORTS.values()}
        addresses = {shown: f"127.0.0.1:{ports[variable]}" for shown, variable in PORTS.items()}
        targets = {
            "PERSON_V1": addresses["127.0.0.1:8001"],
            "PERSON_V2": addresses["127.0.0.1:8002"],
        }
        stack.callback(end_all, folder)
        yield Reader(folder, {**ports, **targets}, addresses)


def _runs(started: Path) -> bool:
    """Whether the program of a `.pid` file is running, or the file does not exist."""
    if not started.exists():
        return True
    with suppress(psutil.NoSuchProcess, ValueError):
        return psutil.Process(int(started.read_text())).status() != psutil.STATUS_ZOMBIE
    return False


def end_all(folder: Path) -> None:
    """Kill the programs that were started in a folder, by their `.pid` files."""
    for started in folder.glob("*.pid"):
        with suppress(psutil.NoSuchProcess, ValueError):
            process = psutil.Process(int(started.read_text()))
            if process.cwd() == str(folder):  # it is still the process that wrote the file
                process.kill()


def _same(text: str) -> str:
    text = _COUNTED.sub(lambda found: "N".rjust(len(found[0])), text)
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text.strip()
