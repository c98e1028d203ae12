"""A configuration that was refused because it has mistakes."""

import hashlib
from typing import NamedTuple

from gateway.base.mistakes import Issue, printable

_MAX_SUMMARY = 500


class RefusedRules(NamedTuple):
    content: bytes
    issues: tuple[Issue, ...]
    at: float

    @property
    def summary(self) -> str:
        first, *others = self.issues
        line = f"line {first.line}" if first.line else ""
        place = ", ".join(part for part in (first.file, line, first.place) if part)
        text = printable(f"{place}: {first.text}" if place else first.text)
        shown = text if len(text) <= _MAX_SUMMARY else f"{text[:_MAX_SUMMARY]}..."
        return f"{shown} (and {len(others)} more)" if others else shown


def rules_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
