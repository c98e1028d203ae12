"""Dates in gateway.yaml: a day, which begins at midnight UTC, or a time with a UTC offset."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo


def parse_date(text: str) -> float:
    """Parse a full-date or date-time of RFC 3339 (section 5.6) to seconds since 1970.

    Seconds are optional. Raises ValueError if a date does not exist or a time has no UTC offset.
    """
    try:
        date = datetime.fromisoformat(text.upper())
    except ValueError:
        raise ValueError(f"'{text}' is not a date; write one like 2026-12-31") from None
    if len(text) == len("2026-12-31"):
        date = date.replace(tzinfo=UTC)
    if date.tzinfo is None:
        raise ValueError(
            f"a time needs an offset from UTC; write {text}Z for UTC, or add one such as +01:00"
        )
    try:
        return date.astimezone(UTC).timestamp()
    except OverflowError:
        raise ValueError(
            "a date must be between the years 1 and 9999, also in UTC; write one like 2026-12-31"
        ) from None


def format_date(seconds: float) -> str:
    """Format a date for `parse_date`; midnight UTC is written as a day without a time."""
    date = datetime.fromtimestamp(seconds, UTC)
    text = date.strftime("%Y-%m-%dT%H:%M:%SZ")
    return text.removesuffix("T00:00:00Z")


def time_zone(name: str) -> tzinfo:
    """Return the time zone with this name; raises ValueError if there is none."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"no time zone is called '{name}'; write one like Europe/Berlin") from None
