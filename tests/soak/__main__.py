"""The soak from the command line.

python -m tests.soak [--minutes N] [--seed N]

Prints a line every 10 seconds. Ctrl-C ends it early. Exit status: 0, or 1 with a list of errors.
"""

import sys

from tests.soak.command_line import run
from tests.soak.soak import Soak

if __name__ == "__main__":
    sys.exit(run("tests.soak", Soak, "Nothing wrong, lost, doubled or leaked."))
