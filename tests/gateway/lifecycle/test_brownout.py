"""Brownouts: when requests are refused, when to retry, and which clients are exempt."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.dates import parse_date, time_zone
from gateway.base.errors import FaultCode
from gateway.base.overrides import Overrides
from gateway.base.request import RequestContext
from gateway.lifecycle.brownout import CompiledWindow as Window
from gateway.lifecycle.brownout import Schedule, VersionBrownout, cron_schedule
from tests.gateway.lifecycle.served import first_version
from tests.gateway.world import LAW

KEY = ("person", "1")
ALWAYS = Window()
NEW_YEAR, FEBRUARY = parse_date("2036-01-01"), parse_date("2036-02-01")


def every(seconds: float) -> Schedule:
    return lambda now: (now - now % seconds, now - now % seconds + seconds)


def never(_: float) -> tuple[float, float]:
    return -inf, inf


def brownout(*windows: Window, **more: object) -> VersionBrownout:
    return VersionBrownout(KEY, windows, **more)  # type: ignore[arg-type]


def configured(
    yaml: str, top: str = "clients: { by: [{ header: X-Client }] }\n"
) -> VersionBrownout:
    found = first_version(f"brownout: {{ {yaml} }}", top).brownout
    assert found is not None
    return found


class TestModel:
    """Compiling `brownout` of gateway.yaml; its mistakes are in mistakes.txt."""

    def test_a_brownout_percentage_applies_at_any_time(self) -> None:
        assert configured("percent: 5, status: 410") == brownout(Window(percent=(5, 5)), status=410)

    def test_the_percentage_of_a_window_grows_between_two_dates(self) -> None:
        found = configured("windows: [{ from: 2036-01-01, to: 2036-02-01, percent: [1, 50] }]")
        assert found.windows == (Window(NEW_YEAR, FEBRUARY, percent=(1, 50)),)

    def test_a_schedule_is_in_the_configured_time_zone(self) -> None:
        found = configured('zone: Europe/Berlin, windows: [{ at: "0 9 * * *", minutes: 30 }]')
        opens = parse_date("2036-07-01T09:00+02:00")
        assert next(found.occurrences(opens - 1)) == (opens, opens + 30 * 60, 100)

    def test_the_end_of_each_exemption_is_compiled(self) -> None:
        yaml = "percent: 5, exempt: [{ client: a }, { client: b, until: 2036-01-01 }]"
        assert configured(yaml).exempt == {"a": inf, "b": NEW_YEAR}

    def test_names_of_exempt_clients_are_hashed_like_the_names_in_requests(self) -> None:
        top = "clients: { by: [{ header: X-Client }], hash: pepper }\n"
        (name,) = configured("percent: 5, exempt: [{ client: a }]", top).exempt
        assert name.startswith("hash-")
        assert configured(f"percent: 5, exempt: [{{ client: {name} }}]", top).exempt == {name: inf}


OCCURRENCES = {
    "later": ((Window(100, 200),), 0, [(100, 200, 100)]),
    "open now": ((Window(100, 200),), 150, [(100, 200, 100)]),
    "over": ((Window(100, 200),), 200, []),
    "without an end": ((Window(percent=(5, 5)),), 7, [(-inf, inf, 5)]),
    "a schedule, open now": (
        (Window(schedule=every(100), seconds=(10, 10)),),
        105,
        [(100, 110, 100), (200, 210, 100), (300, 310, 100)],
    ),
    "a schedule, just closed": (
        (Window(schedule=every(100), seconds=(10, 10)),),
        110,
        [(200, 210, 100), (300, 310, 100), (400, 410, 100)],
    ),
    "a growing schedule between two dates": (
        (Window(0, 250, every(100), (10, 60), (0, 50)),),
        50,
        [(100, 130, 20), (200, 250, 40)],
    ),
    "a schedule that opened before its first date": (
        (Window(105, 250, every(100), (20, 20)),),
        0,
        [(105, 120, 100), (200, 220, 100)],
    ),
    "a schedule without a time": ((Window(schedule=never, seconds=(1, 1)),), 0, []),
    "two windows, the earliest first": (
        (Window(300, 400), Window(schedule=every(200), seconds=(10, 10))),
        210,
        [(300, 400, 100), (400, 410, 100), (600, 610, 100)],
    ),
}


@pytest.mark.parametrize(("windows", "now", "found"), OCCURRENCES.values(), ids=OCCURRENCES)
def test_current_and_later_occurrences_are_yielded(
    windows: tuple[Window, ...], now: float, found: list[object]
) -> None:
    assert list(islice(brownout(*windows).occurrences(now), 3)) == found


@given(st.integers(0, 300), st.integers(1, 400), st.integers(1, 60), st.integers(0, 9), st.data())
def test_a_window_is_open_exactly_during_its_occurrences(
    begins: int, lasts: int, length: int, growth: int, data: st.DataObject
) -> None:
    window = Window(begins, begins + lasts, every(70), (length, length + growth))
    now = data.draw(st.integers(0, 500))
    moment = data.draw(st.integers(now, now + 500))
    found = [each for each in window.occurrences(now) if each.begins <= moment < each.ends]
    end = window.open_until(moment)
    assert [each.ends for each in found] == ([] if end is None else [end])


class TestRetry:
    @pytest.mark.parametrize(
        ("windows", "now", "draw", "retry_at"),
        [
            ((), 50, 0, None),
            ((Window(100, 200),), 50, 0, None),
            ((Window(0, 100),), 50, 1.0, 100),
            # With a percentage below 100, a retry may succeed at once.
            ((Window(percent=(5, 5)),), 50, 0.049, 51),
            ((Window(percent=(5, 5)),), 50, 0.05, None),
            # The refusal ends with the last of the open windows and of the windows adjacent to
            # them.
            ((Window(0, 100), Window(0, 300), Window(percent=(50, 50))), 50, 0, 300),
            ((Window(0, 100), Window(100, 200)), 59, 0.999, 200),
            ((Window(0, 100), Window(90, 300), Window(300, 400)), 0, 0.999, 400),
            ((Window(0, 100), Window(101, 200)), 0, 0.999, 100),
            ((Window(0, 100), Window(100, 200, percent=(99, 99))), 0, 0.999, 100),
            ((Window(0, 100), Window(100, 200, percent=(50, 150))), 0, 0.999, 100),
            ((Window(0, 1000, every(100), (60, 60)), Window(60, 90)), 0, 0.999, 90),
            ((Window(0, 1000, every(100), (100, 100)),), 0, 0.999, 1000),
            ((Window(0, 100), Window(100, inf)), 0, 0.999, inf),
            # At most 16 adjacent windows are joined.
            ((Window(0, 1e9, every(100), (100, 100)),), 200, 0, 1900),
        ],
    )
    def test_the_next_attempt_is_after_all_adjacent_windows(
        self, windows: tuple[Window, ...], now: float, draw: float, retry_at: float | None
    ) -> None:
        context = RequestContext("", now, brownout_draw=draw)
        assert brownout(*windows).retry_at(context) == retry_at

    @LAW
    @given(
        st.floats(0, 1e4), st.floats(1, 500), st.floats(0, 1, exclude_max=True), st.floats(0, 100)
    )
    def test_the_next_attempt_is_always_in_the_future(
        self, now: float, length: float, draw: float, percent: float
    ) -> None:
        window = Window(100, 9000, every(100), (length, length), (percent, percent))
        retry_at = brownout(window).retry_at(RequestContext("", now, brownout_draw=draw))
        assert retry_at is None or (retry_at > now and draw < percent / 100 and 100 <= now < 9000)


def test_the_largest_share_of_all_open_windows_applies() -> None:
    found = brownout(Window(0, 100, percent=(5, 5)), Window(50, 100))
    assert [found.share(now) for now in (-1, 0, 50, 100)] == [0, 0.05, 1, 0]


@pytest.mark.parametrize(
    ("client", "now", "exempt"),
    [("acme", 99, True), ("acme", 100, False), ("good", 1e12, True), ("", 0, False)],
)
def test_a_client_is_exempt_until_its_date(client: str, now: float, exempt: bool) -> None:
    found = brownout(ALWAYS, exempt={"acme": 100.0, "good": inf})
    assert found.exempts(RequestContext(client, now)) is exempt
    assert (found.retry_at(RequestContext(client, now)) is None) is exempt


@pytest.mark.parametrize(
    ("paused", "exempt"),
    [({KEY}, True), ({("person", "2")}, False), ({("users", "1")}, False), (set(), False)],
)
def test_a_paused_brownout_refuses_no_client(paused: set[tuple[str, str]], exempt: bool) -> None:
    context = RequestContext("", 50, Overrides(frozenset(paused)))
    assert (brownout(ALWAYS).retry_at(context) is None) is exempt


class TestRefusal:
    def test_retry_after_is_rounded_up(self) -> None:
        fault = brownout(ALWAYS).refusal(100, 50.1, ("1", "2"), {"version": "2"})
        assert (fault.status, fault.code) == (503, FaultCode.VERSION_BROWNOUT)
        assert fault.fields == ((b"Retry-After", b"50"),)
        assert (fault.supported, fault.successor) == (("1", "2"), {"version": "2"})
        assert fault.detail == (
            "Version 1 is being withdrawn and refused for a while; use version 2."
        )

    def test_a_410_refusal_has_no_retry_after(self) -> None:
        fault = brownout(ALWAYS, status=410).refusal(100, 50, ("1",), None)
        assert (fault.status, fault.fields, fault.successor) == (410, (), None)
        assert fault.detail.endswith("use a later version.")

    def test_retry_after_is_an_hour_if_the_brownout_has_no_end(self) -> None:
        fields = brownout(ALWAYS).refusal(inf, 50, ("1",), None).fields
        assert fields == ((b"Retry-After", b"3600"),)


BERLIN = time_zone("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "now", "before", "after"),
    [
        ("0 9 * * 1", "2026-03-29T12:00", "2026-03-23T08:00", "2026-03-30T07:00"),
        ("0 9 * * 1", "2026-03-30T07:00", "2026-03-30T07:00", "2026-04-06T07:00"),
        ("0 9 * * 1", "2026-03-30T06:59:59", "2026-03-23T08:00", "2026-03-30T07:00"),
        # In Berlin, 2:30 is skipped on a day in March, and occurs twice on a day in October.
        ("30 2 * * *", "2026-03-29T01:00", "2026-03-29T01:00", "2026-03-30T00:30"),
        ("30 2 * * *", "2026-10-25T01:30", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("*/5 * * * *", "2026-10-25T01:32", "2026-10-25T01:30", "2026-10-25T01:35"),
        ("0 0 1 1 *", "2026-06-01T00:00", "2025-12-31T23:00", "2026-12-31T23:00"),
        ("0 1 29 2 *", "2026-01-01T00:00", "2024-02-29T00:00", "2028-02-29T00:00"),
    ],
)
def test_a_schedule_returns_the_times_before_and_after_now(
    text: str, now: str, before: str, after: str
) -> None:
    expected = parse_date(f"{before}Z"), parse_date(f"{after}Z")
    assert cron_schedule(text, BERLIN)(parse_date(f"{now}Z")) == expected


@LAW
@given(st.lists(st.integers(0, 4_000_000), min_size=1))
def test_the_cache_of_a_schedule_does_not_change_its_results(offsets: list[int]) -> None:
    """The times are in any order, since a clock may be set back."""
    schedule = cron_schedule("*/7 3-20 * * 1-5", BERLIN)
    for offset in offsets:
        now = 1_774_000_000 + offset
        before, after = schedule(now)
        assert (before, after) == cron_schedule("*/7 3-20 * * 1-5", BERLIN)(now)
        assert before <= now < after


def test_a_scheduled_time_is_past_from_the_moment_that_it_is_reached() -> None:
    schedule = cron_schedule("* * * * *", UTC)
    assert [schedule(now) for now in (59.999, 60.0, 60.001)] == [(0, 60), (60, 120), (60, 120)]


@pytest.mark.parametrize("text", ["", "0 9 * *", "@daily", "0 0 9 * * 1", "x * * * *", "* * * * 8"])
def test_an_invalid_cron_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write minute, hour, day, month and weekday"):
        cron_schedule(text, UTC)


@pytest.mark.parametrize("name", ["", "Berlin", "../UTC", "/etc/passwd", "Europe/"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="write one like Europe/Berlin"):
        time_zone(name)


def test_a_time_zone_observes_summer_time() -> None:
    assert time_zone("UTC") is UTC
    assert datetime(2026, 7, 1, tzinfo=BERLIN).utcoffset() == timedelta(hours=2)
