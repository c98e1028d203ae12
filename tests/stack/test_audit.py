"""`make audit`: the exit statuses with vulnerabilities, without them, and after an error."""

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pip
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "stack/audit.py"
FINDING = "Name Version ID\nuv   0.0.1   X-1\n"


def test_an_unreachable_package_index_gives_one_line_and_status_69(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def create(folder: Path, **_: object) -> None:
        """Create a fake environment with the pip of this one; a real one takes ten seconds."""
        (folder / "bin").mkdir()
        (folder / "bin/python").symlink_to(sys.executable)

    monkeypatch.setattr("venv.create", create)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
    for name, value in nowhere.items():
        monkeypatch.setenv(name, value)
    # Otherwise Python would search for pip next to the link.
    monkeypatch.setenv("PYTHONPATH", str(Path(pip.__file__).parents[1]))
    assert runpy.run_path(str(SCRIPT))["main"](tmp_path) == 69
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("make audit: the check was not possible, as the package index cannot be")


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, str]], int]:
    """Return a function that runs the script with a fake pip-audit.

    `findings` has the report for each requirements file by its name; an empty report means that
    pip-audit fails without a report.
    """

    def run(findings: dict[str, str]) -> int:
        def end(command: list[Any], **_: object) -> subprocess.CompletedProcess[str]:
            found = None
            if str(command[0]).endswith("pip-audit"):
                found = findings.get(Path(command[command.index("--requirement") + 1]).stem)
            if found:
                Path(command[-1]).write_text(found)
            status = 0 if found is None else 1
            return subprocess.CompletedProcess(command, status, "", "first\nno such service\n")

        monkeypatch.setattr(subprocess, "run", end)
        monkeypatch.setattr("venv.create", lambda *_, **__: None)
        status: int = runpy.run_path(str(SCRIPT))["main"](tmp_path)
        return status

    return run


def test_without_known_vulnerabilities_the_status_is_0(
    audit: Callable[[dict[str, str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit({}) == 0
    assert capsys.readouterr().out == "make audit: no vulnerability of a pinned package is known.\n"


def test_known_vulnerabilities_are_printed_and_the_status_is_1(
    audit: Callable[[dict[str, str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit({"lock": FINDING, "test": FINDING}) == 1
    shown = capsys.readouterr().out
    assert shown == f"requirements/lock.txt:\n{FINDING}\nrequirements/test.txt:\n{FINDING}\n"


def test_an_error_of_pip_audit_gives_status_69(
    audit: Callable[[dict[str, str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit({"lock": ""}) == 69
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("as packages cannot be looked up: no such service")
