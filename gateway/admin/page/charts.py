"""The geometry of small charts, as SVG paths for the templates. All charts are 100 wide."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 100.0


def line(values: Sequence[float | None], height: float, top: float) -> str:
    """Return the SVG path of a line; a value of None leaves a gap.

    `top` is the value at the upper edge; the value at the lower edge is 0.
    """
    step, scale = WIDTH / max(len(values) - 1, 1), height / top
    parts: list[str] = []
    drawing = False
    for index, value in enumerate(values):
        if value is None:
            drawing = False
            continue
        within = 0.0 if value < 0.0 else min(value, top)
        parts.append(f"{'L' if drawing else 'M'}{index * step:.2f} {height - within * scale:.2f}")
        alone = (index + 1 == len(values) or values[index + 1] is None) and not drawing
        if alone:  # a path with one point would be invisible
            parts.append("m-0.5 0h1")
        drawing = True
    return "".join(parts)


def area(values: Sequence[float | None], height: float, top: float) -> str:
    """Return the SVG path of the area under a line. Gaps count as 0."""
    inner = line([value or 0.0 for value in values], height, top)
    return f"M0 {height:g}L{inner[1:]}L{WIDTH:g} {height:g}Z" if values else ""


def top_of(values: Sequence[float | None]) -> float:
    """Return a round number not below the maximum: 1, 2 or 5 times a power of ten."""
    most = max((value for value in values if value is not None), default=0.0)
    if most <= 0:
        return 1.0
    unit = 10.0 ** (len(str(int(most))) - 1) if most >= 1 else 10.0 ** -_zeros(most)
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= most)


def _zeros(most: float) -> int:
    zeros = 0
    while most < 1:
        most *= 10
        zeros += 1
    return zeros


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment, with a width of 0, or a period on a time line, from 0 to WIDTH."""

    x: float
    width: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TimeLine:
    """A horizontal time axis from `begin` to `end`, in seconds since 1970."""

    begin: float
    end: float

    def x(self, moment: float) -> float:
        """Return the position of a moment, from 0 to WIDTH, clamped to the edges."""
        share = (moment - self.begin) / max(self.end - self.begin, 1.0)
        return min(max(share, 0.0), 1.0) * WIDTH

    def mark(self, kind: str, text: str, begin: float, end: float | None = None) -> Mark:
        x = self.x(begin)
        return Mark(x, 0.0 if end is None else self.x(end) - x, kind, text)
