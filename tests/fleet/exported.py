"""The output of the command `export`."""

import subprocess
from pathlib import Path

from tests.fork_server import fork_server
from tests.gateway.kit import DEADLINE, ROOT


def exported(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [fork_server().python, "-m", "gateway", "export", *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    return done.stdout
