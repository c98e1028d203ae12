"""`state` (the store) and `fleet` (when a lost replica is forgotten) in gateway.yaml."""

from typing import Annotated
from urllib.parse import unquote, urlsplit

from gateway.base.extras import install, missing
from gateway.base.mistakes import Mistakes
from gateway.base.model import SectionModel, UnitText, matching

POSTGRESQL = ("postgresql", "postgres")
# By extra, the packages that it installs.
_PACKAGES = {"postgresql": ("alembic", "asyncpg", "sqlalchemy"), "state": ("alembic", "sqlalchemy")}
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}

LongDuration = Annotated[
    str, matching(r"^[0-9]{1,5}[smhd]$", "not a duration; write one like 12h or 7d"), UnitText
]


class Fleet(SectionModel):
    """The settings for gateways that share their state in PostgreSQL."""

    forget_after: LongDuration = "7d"
    """The time after which a lost replica is forgotten, in seconds, minutes, hours or days: 12h,
    7d. Until then, no version can be retired. The default is 7d."""

    @property
    def forget_after_seconds(self) -> float:
        return float(self.forget_after[:-1]) * _UNITS[self.forget_after[-1]]


def extra_of(location: str) -> str:
    """Return the extra with the packages for a path or a URL."""
    return "postgresql" if "://" in location else "state"


def parse_state(text: str | None, mistakes: Mistakes) -> str | None:
    """Return the path of the state file or the URL of the database; None for memory.

    Missing packages are a warning, because `check` may run on another machine than the gateway.
    """
    location = _location(text, mistakes)
    if location is not None:
        extra = extra_of(location)
        if package := missing(*_PACKAGES[extra]):
            mistakes.warn(f"warning: needs {package}, {install(extra)}", "state")
    return location


def _location(text: str | None, mistakes: Mistakes) -> str | None:
    if not text or not text.strip():
        return None
    if text.endswith(":memory:"):
        mistakes.add("is not a file; omit state to keep it in memory", "state")
        return None
    scheme, found, rest = text.partition("://")
    if not found and text.partition(":")[0] not in (*POSTGRESQL, "sqlite"):
        return text
    if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/") and "?" not in rest:
        return unquote(rest[1:])
    if scheme in POSTGRESQL and _has_host(text):
        return text
    # The message does not quote the URL, which may contain a password.
    mistakes.add(
        "not a location of state; write a path, sqlite:///PATH, or"
        " postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for an @ in the password, %2F for"
        " a slash, %23 for a # and %3F for a ?",
        "state",
    )
    return None


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # Drivers parse a second @ in different ways. If the password contained a slash, the rest of
        # the password would become part of the database name, which is displayed.
        whole = parts.netloc.count("@") < 2 and "@" not in parts.path
        return whole and bool(parts.hostname) and parts.port != 0 and len(parts.path) > 1
    except ValueError:
        return False
