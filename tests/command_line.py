"""Commands of the gateway, run in this process: a program takes a second of CPU to start."""

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
        arguments: as they are typed, without anything that a shell would act on but quotes.
        folder: where it runs.
        variables: the whole environment.
        out: takes the standard output.
        err: takes what is printed on the other.
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
        except SystemExit as end:  # as argparse ends a program
            return int(end.code or 0)
