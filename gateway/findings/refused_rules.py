"""A configuration that was refused because it has mistakes."""

import hashlib
from typing import NamedTuple

from gateway.base.mistakes import Issue, printable

_MAX_SUMMARY = 500


class RefusedRules(NamedTuple):
    """A refused configuration: its content, its mistakes, and the time of the refusal."""

    content: bytes
    issues: tuple[Issue, ...]
    at: float

    @property
    def summary(self) -> str:
        """The first mistake and its location on one line, and the number of other mistakes."""
        first, *others = self.issues
        line = f"line {first.line}" if first.line else ""
        place = ", ".join(part for part in (line, first.place) if part)
        text = printable(f"{place}: {first.text}" if place else first.text)
        shown = text if len(text) <= _MAX_SUMMARY else f"{text[:_MAX_SUMMARY]}..."
        return f"{shown} (and {len(others)} more)" if others else shown


def rules_hash(content: bytes) -> str:
    """Return a short hash of a configuration, to compare the configurations of two gateways."""
    return hashlib.sha256(content).hexdigest()[:12]
