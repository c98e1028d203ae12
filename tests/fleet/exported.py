"""What the command `export` prints."""

import subprocess
import sys
from pathlib import Path

from tests.gateway.kit import DEADLINE, ROOT


def exported(folder: Path, *words: str) -> str:
    """Return what `export` prints in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "export", *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    return done.stdout
