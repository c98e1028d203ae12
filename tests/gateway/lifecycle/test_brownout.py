"""Brownouts: when a request is refused, when it may come back, and whom it spares."""

from dataclasses import dataclass
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.context import RequestContext
from gateway.base.errors import FaultCode
from gateway.base.overrides import Overrides
from gateway.lifecycle.brownout import Brownout, Growth, Window
from tests.gateway.world import LAW

SERVED = ("person", "1")
ALWAYS = Window()


@dataclass(frozen=True)
class Every:
    """A schedule that repeats itself."""

    seconds: float

    def around(self, now: float) -> tuple[float, float]:
        before = now - now % self.seconds
        return before, before + self.seconds


def brownout(*windows: Window, **more: object) -> Brownout:
    """Return the brownouts of version 1."""
    return Brownout(SERVED, windows, **more)  # type: ignore[arg-type]


class TestWindow:
    """Open at its times, between its dates."""

    TEN = Window(100, 1000, Every(100), Growth(10, 10))

    @pytest.mark.parametrize(
        ("now", "closes"),
        [(0, None), (99, None), (100, 110), (109.9, 110), (110, None), (900, 910), (1000, None)],
    )
    def test_by_a_schedule(self, now: float, closes: float | None) -> None:
        assert self.TEN.closes(now) == closes

    @pytest.mark.parametrize(("now", "closes"), [(99, None), (100, 1000), (1000, None)])
    def test_all_the_time_between_two_dates(self, now: float, closes: float | None) -> None:
        assert Window(100, 1000).closes(now) == closes

    @pytest.mark.parametrize(("now", "closes"), [(999, 1000), (1000, None)])
    def test_the_last_date_cuts_it_short(self, now: float, closes: float | None) -> None:
        assert Window(100, 1000, Every(100), Growth(200, 200)).closes(now) == closes

    @pytest.mark.parametrize(
        ("now", "closes"), [(0, 10), (11, None), (500, 530), (529, 530), (531, None), (900, 946)]
    )
    def test_it_opens_for_longer_and_longer(self, now: float, closes: float | None) -> None:
        assert Window(0, 1000, Every(100), Growth(10, 50)).closes(now) == closes

    def test_one_that_was_open_before_it_began_is_as_long_as_the_first(self) -> None:
        assert Window(50, 1050, Every(100), Growth(60, 100)).closes(55) == 60

    @pytest.mark.parametrize(("now", "share"), [(0, 0.1), (500, 0.3), (999, 0.4996)])
    def test_it_refuses_more_and_more(self, now: float, share: float) -> None:
        assert Window(0, 1000, percent=Growth(10, 50)).share(now) == pytest.approx(share)


class TestBrownout:
    """What becomes of a request."""

    @pytest.mark.parametrize("chance", [0.0, 0.99, 1.0])
    def test_a_window_refuses_whoever_comes(self, chance: float) -> None:
        found = brownout(Window(0, 100)).closes(RequestContext("", 50, brownout_draw=chance))
        assert found == 100

    @pytest.mark.parametrize(("chance", "closes"), [(0.0, 51), (0.049, 51), (0.05, None)])
    def test_a_share_refuses_by_chance(self, chance: float, closes: float | None) -> None:
        """The next request may fare better, so it may come at once."""
        window = Window(percent=Growth(5, 5))
        assert brownout(window).closes(RequestContext("", 50, brownout_draw=chance)) == closes

    def test_nothing_open(self) -> None:
        assert brownout().closes(RequestContext(brownout_draw=0)) is None
        assert brownout(Window(100, 200)).closes(RequestContext("", 50, brownout_draw=0)) is None

    def test_of_several_that_are_open_the_one_that_closes_last_counts(self) -> None:
        windows = (Window(0, 100), Window(0, 300), Window(percent=Growth(50, 50)), Window(0, 200))
        assert brownout(*windows).closes(RequestContext("", 50, brownout_draw=0)) == 300
        assert brownout(*windows).share(50) == 1

    @pytest.mark.parametrize(
        ("windows", "again"),
        [
            ((Window(0, 100), Window(100, 200)), 200),
            ((Window(0, 100), Window(90, 300), Window(300, 400)), 400),
            ((Window(0, 100), Window(101, 200)), 100),
            ((Window(0, 100), Window(100, 200, percent=Growth(99, 99))), 100),
            ((Window(0, 100), Window(100, 200, percent=Growth(50, 150))), 100),
            ((Window(0, 1000, Every(100), Growth(60, 60)), Window(60, 90)), 90),
            ((Window(0, 1000, Every(100), Growth(100, 100)),), 1000),
            ((Window(0, 100), Window(100, inf)), inf),
        ],
    )
    def test_windows_that_follow_upon_each_other_are_one(
        self, windows: tuple[Window, ...], again: float
    ) -> None:
        found = brownout(*windows)
        for now in (0, 50, 59):
            assert found.closes(RequestContext("", now, brownout_draw=0.999)) == again

    def test_it_does_not_look_ahead_for_ever(self) -> None:
        found = brownout(Window(0, 1e9, Every(100), Growth(100, 100)))
        assert found.closes(RequestContext("", 0)) == 1700
        for now in range(0, 20_000, 100):
            assert found.closes(RequestContext("", now)) == now + 1700

    def test_the_share_at_a_time(self) -> None:
        windows = brownout(Window(0, 100, percent=Growth(5, 5)), Window(50, 100))
        assert [windows.share(now) for now in (-1, 0, 50, 100)] == [0, 0.05, 1, 0]

    @pytest.mark.parametrize(
        ("client", "now", "spared"),
        [("acme", 99, True), ("acme", 100, False), ("good", 1e12, True), ("", 0, False)],
    )
    def test_exempt_clients_are_spared_until_their_date(
        self, client: str, now: float, spared: bool
    ) -> None:
        found = brownout(ALWAYS, exempt={"acme": 100.0, "good": inf})
        assert found.spares(RequestContext(client, now)) is spared
        assert (found.closes(RequestContext(client, now)) is None) is spared

    @pytest.mark.parametrize(
        ("paused", "spared"),
        [({SERVED}, True), ({("person", "2")}, False), ({("users", "1")}, False), (set(), False)],
    )
    def test_a_pause_spares_everybody(self, paused: set[tuple[str, str]], spared: bool) -> None:
        context = RequestContext("", 50, Overrides(frozenset(paused)))
        assert (brownout(ALWAYS).closes(context) is None) is spared


class TestRefusal:
    """What is said."""

    def test_when_to_come_back_is_rounded_up(self) -> None:
        fault = brownout(ALWAYS).refusal(100, 50.1, ("1", "2"), {"version": "2"})
        assert (fault.status, fault.code) == (503, FaultCode.VERSION_BROWNOUT)
        assert fault.fields == ((b"Retry-After", b"50"),)
        assert (fault.supported, fault.successor) == (("1", "2"), {"version": "2"})
        assert fault.detail == (
            "Version 1 is being withdrawn and refused for a while; use version 2."
        )

    def test_gone(self) -> None:
        fault = brownout(ALWAYS, status=410).refusal(100, 50, ("1",), None)
        assert (fault.status, fault.fields, fault.successor) == (410, (), None)
        assert fault.detail.endswith("use a later version.")

    def test_without_an_end_it_is_worth_another_try_later(self) -> None:
        fields = brownout(ALWAYS).refusal(inf, 50, ("1",), None).fields
        assert fields == ((b"Retry-After", b"3600"),)


@LAW
@given(
    st.floats(0, 1e4),
    st.floats(1, 500),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 100),
)
def test_who_is_refused_may_come_back_later(
    now: float, length: float, chance: float, percent: float
) -> None:
    window = Window(100, 9000, Every(100), Growth(length, length), Growth(percent, percent))
    closes = brownout(window).closes(RequestContext("", now, brownout_draw=chance))
    assert closes is None or (closes > now and chance < percent / 100 and 100 <= now < 9000)
