"""Moments: unix time is read and written without loss of digits."""

import pytest

from gateway.conversion.changes.time import SECONDS, Moment, UnixTime


@pytest.mark.parametrize("text", ["", "1e99", "+1", "01", "1.", ".5", "12345678901234567890", "٣"])
def test_an_invalid_unix_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected unix time in seconds, found something else$"):
        UnixTime().read(text)


@pytest.mark.parametrize("text", ["253402300800", "-62135596801", "-62135596800.1"])
def test_a_unix_time_outside_the_years_1_to_9999_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        UnixTime().read(text)


def test_unix_time_is_written_with_the_configured_digits() -> None:
    assert UnixTime(3).read("-1") == Moment(-1, "999")
    assert UnixTime(digits=1).write(Moment(1, "29")) == "1.2"
    assert UnixTime(3, digits=0).write(Moment(1, "2999")) == "1299"
    assert UnixTime(3).write(Moment(1)) == "1000"


def test_a_whole_number_of_units_is_written_without_a_fraction() -> None:
    assert UnixTime().write(UnixTime(3).read("1000")) == "1"
    assert UnixTime().write(Moment(-1, "000")) == "-1"
    assert UnixTime(digits=2).write(Moment(1, "001")) == "1"
    assert UnixTime(3).write(Moment(1, "5000")) == "1500"
    assert UnixTime().write(Moment(1, "500")) == "1.500"


def test_unix_time_has_a_precision_and_a_date_but_no_zone() -> None:
    assert UnixTime().precision == float("inf")
    assert UnixTime(3, digits=1).precision == SECONDS + 4
    assert UnixTime().has_date
    assert not UnixTime().names_zone
