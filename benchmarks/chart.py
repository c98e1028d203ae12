"""The chart: a bar for each ratio of rates, as an SVG.

The colours have about the same contrast to white and to black, and the chart has no background. So
it is readable on both.
"""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.measure import RATE, Result, Verdict

_TEXT, _RULE = "#767d86", "#8b929b"
_OURS, _MISSED, _THEIRS = "#2f81c7", "#c9622f", "#868e97"
_WIDTH, _LABELS, _VALUES = 880, 350, 150
_ROW, _BAR, _HEADING = 26, 14, 44
_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


def chart(results: Sequence[Result]) -> str:
    """Return the ratios of all comparisons as an SVG document.

    The length of a bar is proportional to its ratio. The dotted line is at 1, the reference of the
    gateway, and a tick marks the goal. A bar is blue if it meets its goal, orange if it misses it,
    and grey without a goal.
    """
    groups = [(each.title, _ratios(each)) for each in results if _ratios(each)]
    longest = max((each.median for _, ratios in groups for each in ratios), default=1.0)
    scale = (_WIDTH - _LABELS - _VALUES) / max(longest, 1.0)
    shapes: list[str] = []
    y = 0
    for title, ratios in groups:
        y += _HEADING
        shapes.append(_text(8, y - 12, title, weight="600"))
        top = y
        for ratio in ratios:
            shapes += _row(ratio, y, scale)
            y += _ROW
        shapes.append(_line(_LABELS + scale, top, y, dotted=True))
    size = f'width="{_WIDTH}" height="{y + 12}" viewBox="0 0 {_WIDTH} {y + 12}"'
    font = f'font-family="{_FONT}" font-size="14" fill="{_TEXT}"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} role="img">'
    return "\n".join([begin, "<title>Rates, as ratios</title>", *shapes, "</svg>\n"])


def _ratios(result: Result) -> list[Verdict]:
    return [verdict for verdict in result.verdicts if verdict.unit == RATE]


def _row(ratio: Verdict, y: int, scale: float) -> list[str]:
    width = ratio.median * scale
    colour = _THEIRS if ratio.goal is None else _OURS if ratio.met else _MISSED
    goal = "" if ratio.goal is None else f"   goal {ratio.goal}"
    middle = y + _ROW / 2
    size = f'width="{width:.1f}" height="{_BAR}"'
    shapes = [
        _text(_LABELS - 12, middle + 5, ratio.text, anchor="end"),
        f'<rect x="{_LABELS}" y="{middle - _BAR / 2:g}" {size} rx="2" fill="{colour}"/>',
        _text(_LABELS + max(width, scale) + 10, middle + 5, f"{ratio.median:.2f} ×{goal}"),
    ]
    if ratio.goal is not None:
        x = _LABELS + ratio.goal.bound * scale
        shapes.append(_line(x, middle - _BAR / 2 - 3, middle + _BAR / 2 + 3))
    return shapes


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "400") -> str:
    where = f'x="{x:.1f}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {where} xml:space="preserve">{escape(text)}</text>'


def _line(x: float, top: float, bottom: float, *, dotted: bool = False) -> str:
    dashes = ' stroke-dasharray="2 3"' if dotted else ' stroke-width="2"'
    return (
        f'<line x1="{x:.1f}" y1="{top:g}" x2="{x:.1f}" y2="{bottom:g}" stroke="{_RULE}"{dashes}/>'
    )
