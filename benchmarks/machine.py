"""Facts about the machine and the installed versions, on which all results depend."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.systems import find

TOOLS = {
    "nginx": ("nginx", "-v"),
    "HAProxy": ("haproxy", "-v"),
    "Envoy": ("envoy", "--version"),
    "Caddy": ("caddy", "version"),
    "Traefik": ("traefik", "version"),
    "wrk": ("wrk", "-v"),
    "taskset": ("taskset", "--version"),
    "setpriv": ("setpriv", "--version"),
}
"""The required programs, each with the command that prints its version."""
_PACKAGES = {
    "envoy": "",
    "caddy": "",
    "traefik": "",
    "taskset": "util-linux",
    "setpriv": "util-linux",
}
_SYSTEM = ("taskset", "setpriv")
_LIBRARIES = ("aiohttp", "httptools", "uvloop", "msgspec")
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def obstacle() -> str:
    """Return why the benchmark cannot run, with a remedy; empty if it can run."""
    lacking = [command for command, _ in TOOLS.values() if find(command) is None]
    if not lacking:
        enough = len(os.sched_getaffinity(0)) > 1
        return "" if enough else "The benchmark needs two cores: for a system and for the load."
    packages = sorted({_PACKAGES.get(command, command) for command in lacking} - {""})
    lines = [f"The benchmark needs {', '.join(lacking)}."]
    if packages:
        lines.append(f"On Debian: apt-get install --no-install-recommends {' '.join(packages)}")
    if not all(_PACKAGES.get(command, command) for command in lacking):
        lines.append("The others come with `make bench`, which installs requirements/bench.txt.")
    return "\n".join(lines)


def describe() -> dict[str, str]:
    """Return the facts on which the results depend, by name."""
    return {
        "CPU": f"{_cpu()}, {len(os.sched_getaffinity(0))} cores",
        "Memory": f"{psutil.virtual_memory().total / 1e9:.0f} GB",
        "System": f"{platform.system()} {platform.release()}",
        "Load before": f"{os.getloadavg()[0]:.2f} (mean of the last minute)",
        "Python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
        **{name: _version(*command) for name, command in TOOLS.items() if name not in _SYSTEM},
    }


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _version(command: str, option: str) -> str:
    # wrk prints its version with exit status 1, nginx on standard error.
    program = find(command)
    assert program is not None  # `obstacle` has checked it
    printed = subprocess.run([program, option], capture_output=True, text=True, check=False)
    number = _NUMBER.search(printed.stdout + printed.stderr)
    return number[0] if number else "unknown"
