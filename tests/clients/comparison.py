"""Runs a client directly at a stand-in and then through a gateway, and compares the results."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.clients.stand_in import Request, StandIn
from tests.gateway.kit import DEADLINE, ROOT, start_program

CALLS = Path(__file__).with_name("calls")
# Created by `make test-clients` next to the environment of the tests.
CLIENTS = Path(sys.prefix) / "clients"
Results = dict[str, Any]


@dataclass(frozen=True)
class Client:
    """A script that makes the calls of an official client, and the command that starts it."""

    script: str
    folder: str = ""

    def run(self, base: str, *arguments: str) -> Results:
        """Make all calls at an address; return results by name, with BASE for the address."""
        with (CALLS / self.script).open() as script:
            found = subprocess.run(
                [*self._command(), base, *arguments],
                cwd=CLIENTS / self.folder,
                env={**os.environ, **self._variables()},
                stdin=script,
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                check=False,
            )
        assert found.returncode == 0, found.stderr
        results: Results = json.loads(found.stdout.replace(base, "BASE"))
        return results

    def _command(self) -> Sequence[str | Path]:
        if self.script.endswith(".py"):
            return [CLIENTS / "bin" / "python", CALLS / self.script]
        if not shutil.which("node") or not (CLIENTS / self.folder / "node_modules").exists():
            pytest.skip("clients in JavaScript need node and npm (Debian: nodejs npm)")
        return ["node", "--input-type=module", "-"]  # packages are found from the working directory

    def _variables(self) -> Mapping[str, str]:
        return {"PYTHONPATH": os.pathsep.join((str(CLIENTS / self.folder), str(ROOT)))}


@dataclass(frozen=True)
class Comparison:
    """The results and requests of a client at the stand-in and through the gateway."""

    direct: Results
    through: Results
    direct_requests: list[Request]
    requests: list[Request]

    @property
    def raised(self) -> set[str]:
        """The calls that raise an exception even without the gateway."""
        return {
            name
            for name, result in self.direct.items()
            if isinstance(result, dict) and "raised" in result
        }

    @property
    def altered(self) -> set[str]:
        pairs = zip(self.direct_requests, self.requests, strict=True)
        return {
            f"{sent.method} {sent.path}" for sent, came in pairs if _content(sent) != _content(came)
        }

    @property
    def different(self) -> Results:
        return {
            name: self.through[name]
            for name in self.direct
            if self.through[name] != self.direct[name]
        }


def _content(request: Request) -> tuple[str, bytes]:
    """Return the query and the body; the boundary of a multipart body is random."""
    boundary = request.headers.get("content-type", "").partition("boundary=")[2]
    return urlsplit(request.target).query, request.body.replace(boundary.encode() or b"--", b"--")


def compare(
    folder: Path,
    rules: str,
    services: tuple[StandIn, StandIn],
    client: Client,
    *arguments: str,
    **variables: str,
) -> Comparison:
    alone, behind = services
    with alone.serve() as base:
        direct = client.run(base, *arguments)
    with behind.serve() as base, ExitStack() as stack:
        folder.mkdir(exist_ok=True)
        (folder / "gateway.yaml").write_text(rules)
        gateway = start_program(stack, folder, "gateway", SERVICE=base, **variables)
        through = client.run(gateway.url, *arguments)
    return Comparison(direct, through, alone.requests, behind.requests)
