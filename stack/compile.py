"""Compiles the data path in a wheel of the gateway to machine code, with mypyc.

Usage: compile.py WHEEL FOLDER

Writes the compiled wheel into the folder and prints its path. The wheel is for the running version
of Python and this platform. The modules are listed in pyproject.toml, at `tool.compile`. Compiling
needs a C compiler, requirements/compile.txt and the dependencies of the gateway.
"""

import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"

# This script runs in an unpacked wheel, so that compiled modules do not appear next to the sources
# that developers edit.
_SETUP = """\
import sys

from mypyc.build import mypycify
from setuptools import setup

scratch, *arguments = sys.argv[1:]
# Higher optimization takes longer and is not faster.
modules = mypycify(arguments, group_name="gateway", target_dir=scratch, opt_level="1")
places = ["--build-lib", ".", "--build-temp", scratch]
setup(name="gateway", packages=[], ext_modules=modules, script_args=["build_ext", *places])
"""


def modules() -> list[str]:
    listed: list[str] = tomllib.loads(PROJECT.read_text())["tool"]["compile"]["modules"]
    return listed


def compile_wheel(wheel: Path, folder: Path) -> Path:
    """Return the path of the compiled wheel; raises subprocess.CalledProcessError."""
    with TemporaryDirectory() as scratch:
        _run(Path(scratch), "-m", "wheel", "unpack", "--dest", "wheel", str(wheel.resolve()))
        (package,) = (Path(scratch) / "wheel").iterdir()
        paths = [f"{name.replace('.', '/')}.py" for name in modules()]
        _run(package, "-c", _SETUP, f"{scratch}/build", f"--config-file={PROJECT}", *paths)
        (about,) = package.glob("*.dist-info/WHEEL")
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        platform = re.sub("[-.]", "_", sysconfig.get_platform())
        text = about.read_text().replace("Purelib: true", "Purelib: false")
        about.write_text(text.replace("py3-none-any", f"{python}-{python}-{platform}"))
        folder.mkdir(parents=True, exist_ok=True)
        _run(folder, "-m", "wheel", "pack", str(package))
        version = package.name.replace("-", "-", 1)
        return folder / f"{version}-{python}-{python}-{platform}.whl"


def _run(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, *words], cwd=folder, check=True, stdout=sys.stderr)  # noqa: S603


if __name__ == "__main__":
    sys.stdout.write(f"{compile_wheel(Path(sys.argv[1]), Path(sys.argv[2]))}\n")
