"""Patterns of dates and times, RFC 3339 and time zones."""

import re
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.time import Moment, minutes_of, offset_text, parse_pattern, rfc_3339
from tests.gateway.world import LAW


@pytest.mark.parametrize(
    ("pattern", "strftime"),
    [
        ("yyyy-MM-dd", "%Y-%m-%d"),
        ("dd/MM/yyyy HH:mm", "%d/%m/%Y %H:%M"),
        ("yyyyMMdd'T'HHmmss", "%Y%m%dT%H%M%S"),
        ("dd.MM.yyyy, HH 'o''clock'", "%d.%m.%Y, %H o'clock"),
        ("MM/yyyy", "%m/%Y"),
        ("HH''mm{}", "%H'%M{}"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", "%Y-%m-%d %H:%M:%S.%f"),
        ("EEE, dd MMM yyyy HH:mm:ss 'GMT'", "%a, %d %b %Y %H:%M:%S GMT"),
        ("EEEE, dd-MMMM-yyyy", "%A, %d-%B-%Y"),
        ("MM/dd/yyyy hh:mm a", "%m/%d/%Y %I:%M %p"),
    ],
)
@LAW
@given(moment=st.datetimes(datetime(1000, 1, 1)))
def test_a_pattern_is_written_and_parsed_as_by_the_standard_library(
    pattern: str, strftime: str, moment: datetime
) -> None:
    form = parse_pattern(pattern)
    text = moment.strftime(strftime)
    assert form.write(form.read(text)) == text


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "'' has no field of a time; write one such as yyyy-MM-dd"),
        ("XXX", "'XXX' has no field of a time"),
        ("yyy-MM-dd", "'yyy' is not a field of a time; write yyyy, MM"),
        ("YYYY", "'YYYY' is not a field"),
        ("yyyy-MM-ddTHH", "'T' is not a field of a time; write yyyy, MM, dd, HH, mm, ss, SSS"),
        ("yyyy-MM-dd dd", "'dd' occurs twice in the pattern; name each field once"),
        ("dd/MM", "'dd/MM' skips a field"),
        ("yyyy-dd", "skips a field"),
        ("yyyy-MM-dd mm", "skips a field"),
        ("HH:mmXXX", "is a time of day, which has no offset; remove XXX"),
        ("yyyy 'x", "a single quote is not closed"),
        ("yyyyMd", "'M' has one or two digits, so a separator must follow it; write one, or 'MM'"),
        ("yyyy-MM-dd hh:mm", "needs both hh and a for a 12-hour clock; write HH otherwise"),
        ("yyyy-MM-dd HH:mm a", "needs both hh and a for a 12-hour clock"),
        ("EEE HH:mm", "has a day of the week without a date; add dd, MM and yyyy"),
    ],
)
def test_an_invalid_time_pattern_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_pattern(pattern)


@pytest.mark.parametrize(
    "text",
    ["1/12/2026", "01/12/26", " 01/12/2026", "01/12/2026 ", "01-12-2026", "\u06601/12/2026", ""],
)
def test_a_time_that_deviates_from_its_pattern_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^expected a time written as dd/MM/yyyy, found something else$"
    ):
        parse_pattern("dd/MM/yyyy").read(text)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("M/d/yyyy", ["1/2/2024", "12/31/2024"]),
        ("yy-MM-dd", ["69-01-01", "68-12-31"]),
        ("yyyy-MM-dd h:mm a", ["2024-01-01 12:00 AM", "2024-01-01 12:00 PM", "2024-01-01 1:00 PM"]),
        ("d. MMMM yyyy H:mm", ["1. May 2024 7:30", "31. December 2024 23:30"]),
        (
            "yyyy-MM-dd'T'HH:mm:ss.SSSXX",
            ["2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00.125-0330"],
        ),
        ("yyyy-MM-dd'T'HH:mm:ssxx", ["2024-01-01T00:00:00+0000"]),
        ("yyyy-MM-dd'T'HH:mm:ssxxx", ["2024-01-01T00:00:00+00:00"]),
        ("dd/MMM/yyyy:HH:mm:ss Z", ["10/Oct/2000:13:55:36 -0700"]),
    ],
)
def test_a_time_with_names_or_few_digits_is_written_as_it_was_read(
    pattern: str, texts: list[str]
) -> None:
    form = parse_pattern(pattern)
    assert [form.write(form.read(text)) for text in texts] == texts


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd hh:mm a", "2024-01-01 13:00 PM"),
        ("yyyy-MM-dd hh:mm a", "2024-01-01 00:00 AM"),
        ("h:mm a", "0:30 AM"),
        ("yyyy-MM-dd HH:mm", "2024-01-01 24:00"),
        ("yyyy-MM-dd HH:mm:ss", "2024-01-01 00:00:61"),
    ],
)
def test_a_time_that_does_not_exist_is_refused(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"found a day or hour that does not exist$"):
        parse_pattern(pattern).read(text)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("EEE, dd MMM yyyy", "Tue, 01 Jan 2024", "another day of the week than that of the date"),
        ("yyyy-MM-dd HH:mm:ss", "2024-01-01 22:59:60", "a second 60 that is not at the end of a"),
    ],
)
def test_a_time_that_contradicts_itself_is_refused(pattern: str, text: str, found: str) -> None:
    with pytest.raises(ValueError, match=f"^expected a time written as {pattern}, found {found}"):
        parse_pattern(pattern).read(text)


@pytest.mark.parametrize(
    ("pattern", "text", "written"),
    [
        ("h:mm a", "12:30 am", "12:30 AM"),
        ("hh:mm a", "12:00 pm", "12:00 PM"),
        ("h:mm a", "01:05 Pm", "1:05 PM"),
        ("EEEE, d MMMM yyyy", "MONDAY, 01 JANUARY 2024", "Monday, 1 January 2024"),
        ("EEE, dd MMM yyyy", "mon, 01 jan 2024", "Mon, 01 Jan 2024"),
        ("yyyy-MM-dd HH:mm:ss xx", "2024-01-01 00:00:00 -0000", "2024-01-01 00:00:00 +0000"),
        ("yyyy-MM-dd HH:mm:ssXXX", "2016-12-31 23:59:60Z", "2017-01-01 00:00:00Z"),
        ("yyyy-MM-dd HH:mm:ssXXX", "2017-01-01 05:29:60+05:30", "2017-01-01 05:30:00+05:30"),
        ("yyyy-MM-dd HH:mm:ss", "2016-12-31 23:59:60", "2017-01-01 00:00:00"),
    ],
)
def test_other_writings_of_a_time_are_read(pattern: str, text: str, written: str) -> None:
    form = parse_pattern(pattern)
    assert form.write(form.read(text)) == written


def test_a_two_digit_year_is_not_written_for_another_century() -> None:
    with pytest.raises(ValueError, match=r"^expected a time in the years 1969 to 2068"):
        parse_pattern("yy-MM-dd").write(Moment(4_000_000_000))


@pytest.mark.parametrize("text", ["29/02/2023", "31/04/2023", "00/01/2023", "01/13/2023"])
def test_a_date_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"found a day or hour that does not exist$"):
        parse_pattern("dd/MM/yyyy").read(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01t00:00:01z", Moment(1, "", 0)),
        ("1970-01-01T00:00:01.50-00:00", Moment(1, "50", 0)),
        ("1970-01-01T02:00:01+02:00", Moment(1, "", 120)),
        ("1970-01-01T00:00:01.000+0000", Moment(1, "000", 0)),
        ("1970-01-01 01:00:00+01", Moment(0, "", 60)),
        ("1970-01-01T00:01Z", Moment(60, "", 0)),
        ("1970-12-31T23:59:60Z", Moment(365 * 86_400, "", 0)),
        ("1971-01-01T00:59:60+01:00", Moment(365 * 86_400, "", 60)),
        ("0001-01-01T00:00:00+23:59", Moment(-62135596800 - 23 * 3600 - 59 * 60, "", 1439)),
    ],
)
def test_rfc_3339_times_are_parsed(text: str, moment: Moment) -> None:
    assert rfc_3339().read(text) == moment


@pytest.mark.parametrize(
    "text",
    ["2023-11-14T22:13:20", "2023-11-14T22:13:60Z", "2023-11-14T24:00:00Z", "2023-11-14T22Z"],
)
def test_times_that_do_not_follow_rfc_3339_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a time written as 2026-12-31T18:00:00Z"):
        rfc_3339().read(text)


@pytest.mark.parametrize(
    ("digits", "unless_zero", "shortest"),
    [
        ("", "", ""),
        ("000", "", ""),
        ("120", ".120", ".12"),
        ("125", ".125", ".125"),
        ("005000", ".005000", ".005"),
        ("000000000001", ".000000000001", ".000000000001"),
    ],
)
def test_the_fraction_setting_controls_trailing_zeros(
    digits: str, unless_zero: str, shortest: str
) -> None:
    moment = Moment(1, digits)
    assert rfc_3339().write(moment) == f"1970-01-01T00:00:01{digits and '.'}{digits}Z"
    for form, written in (
        (rfc_3339(fraction="unless_zero"), unless_zero),
        (rfc_3339(fraction="shortest"), shortest),
    ):
        assert form.write(moment) == f"1970-01-01T00:00:01{written}Z"


def test_a_time_in_another_zone_is_refused_if_configured() -> None:
    form = rfc_3339(60, only_zone=True)
    assert form.read("1970-01-01T01:00:00+01:00").second == 0
    with pytest.raises(ValueError, match=r"^expected a time in the zone \+01:00, found another$"):
        form.read("1970-01-01T00:00:00Z")


def test_a_year_with_five_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        parse_pattern("yyyy", 60).write(Moment(253402300799))


def test_utc_offsets_are_parsed_and_written() -> None:
    for text, minutes in (("Z", 0), ("+02:00", 120), ("-03:30", -210)):
        assert minutes_of(text) == minutes
        assert offset_text(minutes) == text
    with pytest.raises(ValueError, match=r"^not an offset from UTC; write Z, or one such as \+02"):
        minutes_of("+2")


def test_the_pattern_of_a_time_determines_its_precision() -> None:
    assert rfc_3339().precision == float("inf")
    assert [parse_pattern(text).precision for text in ("yyyy", "HH:mm", "HH:mm:ss.SS")] == [0, 4, 7]
    assert (parse_pattern("HH").has_date, parse_pattern("yyyy").names_zone) == (False, False)


BERLIN = ZoneInfo("Europe/Berlin")
LOCAL = parse_pattern("dd.MM.yyyy HH:mm", place=BERLIN)


@pytest.mark.parametrize(
    ("text", "utc", "offset"),
    [
        ("01.02.2026 09:30", "2026-02-01T08:30:00Z", "+01:00"),
        ("01.07.2026 09:30", "2026-07-01T07:30:00Z", "+02:00"),
        ("25.10.2026 02:30", "2026-10-25T00:30:00Z", "+02:00"),
    ],
)
def test_a_named_time_zone_applies_daylight_saving_time(text: str, utc: str, offset: str) -> None:
    """When clocks are put back, a local time in the repeated hour means the first of the two."""
    moment = rfc_3339().read(utc)
    assert LOCAL.write(moment) == text
    assert LOCAL.read(text) == moment._replace(offset=None)
    written = rfc_3339(place=BERLIN).write(LOCAL.read(text))
    assert written == f"{text[6:10]}-{text[3:5]}-{text[:2]}T{text[11:]}:00{offset}"
    only = rfc_3339(only_zone=True, place=BERLIN)
    assert only.read(written).second == moment.second
    with pytest.raises(ValueError, match=r"in the zone Europe/Berlin, found another"):
        only.read(utc)


def test_a_local_time_skipped_by_daylight_saving_time_is_refused() -> None:
    with pytest.raises(ValueError, match="found a day or hour that does not exist"):
        LOCAL.read("29.03.2026 02:30")
    day = parse_pattern("yyyy-MM-dd", place=ZoneInfo("America/Sao_Paulo"))
    assert day.write(day.read("2018-11-05")) == "2018-11-05"


def test_a_local_time_outside_the_years_1_to_9999_is_refused() -> None:
    with pytest.raises(ValueError, match="in the years 1 to 9999"):
        LOCAL.write(Moment(253402300799))
    with pytest.raises(ValueError, match="found a day or hour that does not exist"):
        LOCAL.read("01.01.0001 00:00")


@LAW
@given(st.datetimes(datetime(1000, 1, 2), datetime(9000, 1, 1)), st.integers(-1439, 1439))
def test_with_own_zone_each_version_has_times_in_its_own_zone(
    moment: datetime, minutes: int
) -> None:
    """The zone in the input does not matter."""
    ours = replace(rfc_3339(minutes), own_zone=True)
    theirs = replace(rfc_3339(place=ZoneInfo("Europe/Berlin")), own_zone=True)
    text = moment.replace(microsecond=0).isoformat() + offset_text(minutes)
    there = theirs.write(ours.read(text))
    assert datetime.fromisoformat(there) == datetime.fromisoformat(text)
    assert there[-6:] in ("+01:00", "+02:00", "+00:53")
    assert ours.write(theirs.read(there)) == text
