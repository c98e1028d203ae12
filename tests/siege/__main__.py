"""The siege from the command line.

    python -m tests.siege [--minutes N] [--seed N]

Exit status: 0, or 1 with what is wrong. Ends early on Ctrl-C.
"""

import sys

from tests.siege.siege import Siege
from tests.soak.command_line import run

if __name__ == "__main__":
    sys.exit(run("tests.siege", Siege, "No honest client noticed; nothing is left."))
