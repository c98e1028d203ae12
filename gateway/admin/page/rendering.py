"""Renders templates, with a content security policy that blocks other origins.

Every value is escaped (autoescape), and the policy forbids inline scripts and inline styles.
Therefore markup in a client name is shown as plain text.
"""

import asyncio
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

# jinja2 provides templates with automatic escaping. It is small and widely known.
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from gateway import __version__
from gateway.admin.piecewise import batches
from gateway.findings.formatting import (
    client_text,
    day_text,
    duration_text,
    format_time,
    moment_text,
    period_text,
    plural,
    sentence,
)
from gateway.http.cooperative import turns

_HERE = Path(__file__).parent
# The page loads content only from this port and sends forms only to this port. Other pages cannot
# embed the page in a frame.
_DIRECTIVES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
)
HEADERS = {
    "Content-Security-Policy": "; ".join(_DIRECTIVES),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # With `no-referrer`, browsers would send forms with `Origin: null`, which the origin check
    # refuses.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_STAMP = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
# The number of template parts rendered before the event loop may run other tasks.
_BATCH = 32
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class _Asset:
    """A static file of the page: its content, its media type, and a hash of the content."""

    content: bytes
    kind: str
    tag: str


@cache
def assets() -> Mapping[str, _Asset]:
    found = {}
    for path in sorted((_HERE / "static").iterdir()):
        content = path.read_bytes()
        found[path.name] = _Asset(content, _TYPES[path.suffix], sha256(content).hexdigest()[:12])
    return found


def asset_answer(name: str, tag: str) -> web.Response:
    """Return the response with a static file; cacheable if `tag` is the hash of the content."""
    asset = assets()[name]
    kept = "public, max-age=31536000, immutable" if tag == asset.tag else "no-cache"
    headers = {**HEADERS, "Cache-Control": kept}
    return web.Response(
        body=asset.content, content_type=asset.kind, charset="utf-8", headers=headers
    )


async def html(name: str, values: Mapping[str, object], status: int) -> web.Response:
    """Render a template in pieces, between which the event loop serves requests."""
    pieces = batches((await _loaded(name)).generate(values), _BATCH)
    return web.Response(
        text="".join(["".join(batch) async for batch in turns(pieces)]),
        status=status,
        content_type="text/html",
        headers={**HEADERS, "Cache-Control": "no-store"},
    )


_templates: dict[str, Template] = {}
# The templates that all other templates use.
_SHARED = ("base.html", "parts.html")


async def _loaded(name: str) -> Template:
    """Return a template. It is compiled on first use; a thread does this because it takes long."""
    if name not in _templates:
        _templates[name] = await asyncio.to_thread(_compiled, name)
    return _templates[name]


def _compiled(name: str) -> Template:
    for shared in _SHARED:
        _environment().get_template(shared)
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "client": client_text,
        "count": _count,
        "short": _short,
        "percent": _percent,
        "stamp": format_time,
        "moment": moment_text,
        "moments": _moments,
        "day": day_text,
        "month": lambda seconds: day_text(seconds).split(" ", 1)[1],
        "ago": _ago,
        "period": period_text,
        "plural": plural,
        "ms": _ms,
        "sentence": sentence,
        "plain": lambda number: f"{number:g}",
        "shell": lambda text: shlex.quote(str(text)),
        "slug": _slug,
        "path": lambda text: quote(str(text), safe=""),
    }
    made.globals |= {"asset": _address, "release": __version__}
    return made


def _address(name: str) -> str:
    return f"/page/static/{name}?{assets()[name].tag}"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _short(number: float) -> str:
    """Return a number with at most three digits and a unit, such as 1.2k."""
    for unit in ("", "k", "M", "G"):
        if abs(number) < 999.5:
            return f"{number:.0f}{unit}" if unit == "" or number >= 99.5 else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number:.0f}T"


def _percent(share: float | None) -> str:
    if share is None:
        return "–"
    return "0%" if share == 0 else f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.3g}%"


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else duration_text(seconds)


def _moments(text: str) -> str:
    return _STAMP.sub(lambda found: moment_text(_seconds(found[0])), text)


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _slug(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _ago(seconds: float, now: float) -> str:
    """Return a time relative to now, such as `3 days ago` or `in 2 hours`."""
    away = seconds - now
    if abs(away) < 1:
        return "now"
    return f"in {period_text(away)}" if away > 0 else f"{period_text(-away)} ago"
