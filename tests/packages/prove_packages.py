"""The wheel on each supported Python and platform: `make test-packages`.

The first test needs the interpreters, the second one a package index that has metadata of wheels.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT
from tests.test_distribution import serve, service, wheel  # noqa: F401  # two fixtures

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Tags of wheels by platform, as pip needs them.
PLATFORMS = {
    "Linux on x86-64": [f"manylinux{tag}_x86_64" for tag in ("_2_28", "_2_17", "2014")],
    "Linux on ARM": [f"manylinux{tag}_aarch64" for tag in ("_2_28", "_2_17", "2014")],
    "macOS": [f"macosx_{tag}" for tag in ("14_0_arm64", "12_0_arm64", "11_0_arm64")],
}
PINS = re.findall(r"^([a-z][^ ]*)", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)


def pip(python: str, *words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    target = ["--python", python] if python else []
    done = subprocess.run([*command, *target, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def interpreter(version: str) -> str:
    """Return the path of a Python of this version; a shim of pyenv may not work."""
    known = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for path in (shutil.which(f"python{version}"), *map(str, known)):
        command = [path or "false", "--version"]
        if path and not subprocess.run(command, capture_output=True, check=False).returncode:
            return path
    pytest.skip(f"Python {version} is not installed")


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_serves_requests_on_each_python(
    version: str,
    wheel: Path,  # noqa: F811  # the fixture
    service: int,  # noqa: F811  # likewise
    tmp_path: Path,
) -> None:
    subprocess.run([interpreter(version), "-m", "venv", "--without-pip", tmp_path], check=True)
    python = str(tmp_path / "bin" / "python")
    pins = ["--require-hashes", "--only-binary", ":all:", "--requirement"]
    pip(python, "install", *pins, str(ROOT / "requirements" / "run.txt"))
    pip(python, "install", "--no-index", "--no-deps", str(wheel))
    serve(tmp_path / "bin" / "version-gateway", service, tmp_path)


@pytest.mark.parametrize("version", [PYTHONS[0], PYTHONS[-1]])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_pinned_package_has_a_wheel_for_the_platform(
    platform: str, version: str, tmp_path: Path
) -> None:
    """Pip applies markers of its own Python, so packages for some Pythons only are left out."""
    tags = [word for tag in PLATFORMS[platform] for word in ("--platform", tag)]
    only = ["--only-binary", ":all:", "--no-deps", "--python-version", version, *tags]
    pins = [pin for pin in PINS if not pin.startswith("backports")]
    pip("", "install", "--dry-run", *only, "--target", str(tmp_path), *pins)
