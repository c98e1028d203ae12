"""Runs commands of the gateway in this process, since starting a program takes a second of CPU."""

import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

import gateway.__main__


def run_here(
    arguments: str, folder: Path, variables: Mapping[str, str], out: TextIO, err: TextIO
) -> int:
    """Run `python -m gateway` in a folder; return the exit status.

    Args:
        arguments: the arguments as typed in a shell; only quotes have a special meaning.
    """
    words = [gateway.__main__.__file__, *shlex.split(arguments)]
    with (
        chdir(folder),
        patch.object(sys, "argv", words),
        patch.dict(os.environ, variables, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            return gateway.__main__.main()
        except SystemExit as end:  # argparse ends programs this way
            return int(end.code or 0)
