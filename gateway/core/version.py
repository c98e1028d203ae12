"""A version of an API: what clients name and what the gateway orders."""

import re
from dataclasses import dataclass

# Strict on purpose: lenient readers have taken `foo1` for 1, and `1.0`, `01` or an Arabic-Indic
# digit for it too. Nine digits keep int() cheap whatever a client sends.
_CANONICAL = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """One version of an API, ordered as a number (so 9 comes before 10)."""

    number: int

    def __str__(self) -> str:
        return str(self.number)


def parse(raw: str) -> Version | None:
    """Return the version that `raw` spells canonically, or None when it is malformed.

    Args:
        raw: the text a client or an operator wrote, optional white space already removed.
    """
    return Version(int(raw)) if _CANONICAL.match(raw) else None
