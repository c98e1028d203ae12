"""Joined: several parameters in the newer version, one with separators in the older one."""

from dataclasses import dataclass

from gateway.conversion.changes.recombined import ParameterValues


@dataclass(frozen=True, slots=True)
class Joined:
    """The values of several parameters, joined in one.

    An absent part is empty between separators. Absent parts at the end leave no separator, unless
    `closed`, where each separator is always there: `2026-01-01..`.
    """

    parts: tuple[str, ...]
    whole: str
    separator: str
    closed: bool = False

    def split(self, values: ParameterValues) -> ParameterValues:
        """Return the parts of the text."""
        pieces = values[self.whole].split(self.separator, len(self.parts) - 1)
        return {name: piece for name, piece in zip(self.parts, pieces, strict=False) if piece}

    def join(self, values: ParameterValues) -> ParameterValues:
        """Return the text of the parts; raises ValueError for one with the separator in it."""
        pieces = [values.get(name, "") for name in self.parts]
        if any(self.separator in piece for piece in pieces[:-1]):
            raise ValueError(f"has '{self.separator}' in it, which separates the parts")
        while not self.closed and len(pieces) > 1 and not pieces[-1]:
            pieces.pop()
        return {self.whole: self.separator.join(pieces)}
