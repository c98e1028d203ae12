"""Moments: unix time, exact to every digit."""

import pytest

from gateway.conversion.changes.time import SECONDS, Moment, UnixTime


@pytest.mark.parametrize("text", ["", "1e9", "+1", "01", "1.", ".5", "12345678901234567890", "٣"])
def test_a_value_that_is_no_unix_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected unix time in seconds, found something else$"):
        UnixTime().read(text)


@pytest.mark.parametrize("text", ["253402300800", "-62135596801", "-62135596800.1"])
def test_the_years_are_1_to_9999(text: str) -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        UnixTime().read(text)


def test_digits() -> None:
    assert UnixTime(3).read("-1") == Moment(-1, "999")
    assert UnixTime(digits=1).write(Moment(1, "29")) == "1.2"
    assert UnixTime(3, digits=0).write(Moment(1, "2999")) == "1299"
    assert UnixTime(3).write(Moment(1)) == "1000"


def test_whole_units_are_whole_numbers() -> None:
    assert UnixTime().write(UnixTime(3).read("1000")) == "1"
    assert UnixTime().write(Moment(-1, "000")) == "-1"
    assert UnixTime(digits=2).write(Moment(1, "001")) == "1"
    assert UnixTime(3).write(Moment(1, "5000")) == "1500"
    assert UnixTime().write(Moment(1, "500")) == "1.500"


def test_precision() -> None:
    assert UnixTime().precision == float("inf")
    assert UnixTime(3, digits=1).precision == SECONDS + 4
    assert UnixTime().has_date
    assert not UnixTime().names_zone
