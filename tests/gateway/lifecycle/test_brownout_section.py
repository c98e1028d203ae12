"""The brownouts of a version: windows, percentages that grow, time zones, exempt clients."""

from math import inf

from gateway.base.dates import parse_date
from gateway.lifecycle.brownout import Brownout, Growth, Window
from tests.gateway.lifecycle.served import first_version

KEY = ("person", "1")


def brownout(more: str) -> Brownout:
    """Return the brownouts of version 1, as they are written."""
    found = first_version(f"brownout: {{ {more} }}").brownout
    assert found is not None
    return found


def test_a_percentage_at_any_time() -> None:
    assert brownout("percent: 5, status: 410") == Brownout(
        KEY, (Window(percent=Growth(5, 5)),), 410, {}
    )


def test_a_window_between_two_dates_grows() -> None:
    built = brownout("windows: [{ from: 2036-01-01, to: 2036-02-01, percent: [1, 50] }]")
    begins, ends = parse_date("2036-01-01"), parse_date("2036-02-01")
    assert built.windows == (Window(begins, ends, percent=Growth(1, 50)),)


def test_a_window_by_a_schedule_opens_in_its_time_zone() -> None:
    built = brownout('zone: Europe/Berlin, windows: [{ at: "0 9 * * *", minutes: 30 }]')
    (window,) = built.windows
    assert window.seconds == Growth(1800, 1800)
    assert window.schedule is not None
    assert window.schedule.around(parse_date("2036-07-01T08:00Z")) == (
        parse_date("2036-07-01T09:00+02:00"),
        parse_date("2036-07-02T09:00+02:00"),
    )


def test_exempt_clients() -> None:
    built = brownout("percent: 5, exempt: [{ client: a }, { client: b, until: 2036-01-01 }]")
    assert built.exempt == {"a": inf, "b": parse_date("2036-01-01")}
