"""A configuration that could not be loaded."""

import hashlib
from typing import NamedTuple

from gateway.base.mistakes import Issue, printable

_MAX_SUMMARY = 500


class RefusedRules(NamedTuple):
    """Rules that cannot be used: their text, their mistakes, and when they were refused."""

    content: bytes
    issues: tuple[Issue, ...]
    at: float

    @property
    def summary(self) -> str:
        """The first mistake on one line, with its place, and how many more there are."""
        first, *others = self.issues
        line = f"line {first.line}" if first.line else ""
        place = ", ".join(part for part in (line, first.place) if part)
        text = printable(f"{place}: {first.text}" if place else first.text)
        shown = text if len(text) <= _MAX_SUMMARY else f"{text[:_MAX_SUMMARY]}..."
        return f"{shown} (and {len(others)} more)" if others else shown


def rules_hash(content: bytes) -> str:
    """Return a short hash of the text of rules, by which two gateways see whether theirs agree."""
    return hashlib.sha256(content).hexdigest()[:12]
