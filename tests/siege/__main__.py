"""The siege from the command line.

python -m tests.siege [--minutes N] [--seed N]

Ctrl-C ends it early. Exit status: 0, or 1 with a list of errors.
"""

import sys

from tests.siege.siege import Siege
from tests.soak.command_line import run

if __name__ == "__main__":
    sys.exit(run("tests.siege", Siege, "No honest client noticed; nothing is left."))
