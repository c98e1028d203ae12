"""Checks all pinned packages for known vulnerabilities: `make audit`.

Exit status: 0 without vulnerabilities, 1 if there are some, 69 if the check cannot run.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNAVAILABLE = os.EX_UNAVAILABLE


def main(folder: Path) -> int:
    """Return the exit status; `folder` gets the virtual environment of pip-audit."""
    venv.create(folder, clear=True, with_pip=True)
    pins = ("--require-hashes", "--only-binary", ":all:", "-r", ROOT / "requirements/audit.txt")
    installed = _run(folder / "bin/python", "-m", "pip", "install", "--no-input", *pins)
    if installed.returncode:
        return _unknown("the package index cannot be reached", installed)
    found = 0
    for pinned in sorted((ROOT / "requirements").glob("*.txt")):
        report = folder / f"{pinned.stem}.report"
        asked = ("--strict", "--disable-pip", "--requirement", pinned, "--output", report)
        audited = _run(folder / "bin/pip-audit", *asked)
        if not audited.returncode:
            continue
        if not report.exists():  # pip-audit failed and wrote no result
            return _unknown("packages cannot be looked up", audited)
        sys.stdout.write(f"{pinned.relative_to(ROOT)}:\n{report.read_text()}\n")
        found = 1
    if not found:
        sys.stdout.write("make audit: no vulnerability of a pinned package is known.\n")
    return found


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, check=False, text=True)  # noqa: S603


def _unknown(why: str, failed: subprocess.CompletedProcess[str]) -> int:
    (*_, reason) = failed.stderr.splitlines() or ("",)
    sys.stderr.write(f"make audit: the check was not possible, as {why}: {reason}\n")
    return UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
