"""Fuzz all targets, or the given ones.

python -m tests.fuzz [--seconds N] [TARGET ...]

Each target runs in a separate process, which libFuzzer ends at the first failure. The bytes that
caused the failure are printed and stored in .fuzz/. Exit status: 0, or 1 if a target failed.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

# atheris: libFuzzer for Python, the only Python fuzzer that is guided by coverage.
import atheris

with atheris.instrument_imports(include=["gateway"]):
    from tests.fuzz.targets import TARGETS

KEPT = Path(".fuzz")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=int, default=60, help="how long for each; 60 by default")
    parser.add_argument("target", nargs="*", default=[*TARGETS], help=f"of {', '.join(TARGETS)}")
    arguments = parser.parse_args()
    if arguments.target == [*TARGETS] or len(arguments.target) > 1:
        own = [sys.executable, "-m", "tests.fuzz", "--seconds", str(arguments.seconds)]
        failed = [
            name
            for name in arguments.target
            if subprocess.run([*own, name], check=False).returncode
        ]
        sys.stdout.write(f"Failed: {', '.join(failed)}\n" if failed else "Nothing found.\n")
        return 1 if failed else 0
    _fuzz(arguments.target[0], arguments.seconds)
    return 0


def _fuzz(name: str, seconds: int) -> None:
    target = TARGETS[name]
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(target.seeds):
            (Path(corpus) / str(number)).write_bytes(seed)
        atheris.Setup(
            [
                f"fuzz {name}",
                f"-max_total_time={seconds}",
                f"-artifact_prefix={KEPT}/{name}-",
                "-timeout=5",
                "-print_final_stats=1",
                "-verbosity=1",
                corpus,
            ],
            target.run,
        )
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
