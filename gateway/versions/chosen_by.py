"""What chooses the version of a request that names none; else it is the name of a mechanism."""

from typing import Final

PIN: Final = "pin"
DEFAULT: Final = "default"
NEWEST: Final = "newest"
"""OPTIONS without a version is answered for the newest version that fits."""

UNNAMED: Final = frozenset({PIN, DEFAULT, NEWEST})
