"""Time: the same moment in a different notation in each version."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import FormWays
from gateway.conversion.changes.time import (
    Moment,
    MomentForm,
    UnixTime,
    parse_pattern,
    rewrite_moments,
    rfc_3339,
)
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import Json, down, fails, spelt, up
from tests.gateway.world import LAW

RFC, SECONDS, MILLIS = rfc_3339(), UnixTime(), UnixTime(3)


def time(newer: MomentForm, older: MomentForm) -> Change:
    ways = rewrite_moments(older, newer), rewrite_moments(newer, older)
    return FormWays(*ways, newer.type, older.type).change((), ("f",))


@pytest.mark.parametrize(
    ("newer", "older", "written", "other"),
    [
        (RFC, SECONDS, '"2023-11-14T22:13:20Z"', "1700000000"),
        (RFC, SECONDS, '"2023-11-14T22:13:20.120Z"', "1700000000.120"),
        (RFC, SECONDS, '"1969-12-31T23:59:58.75Z"', "-1.25"),
        (RFC, SECONDS, '"1970-01-01T00:00:00Z"', "0"),
        (RFC, SECONDS, '"0001-01-01T00:00:00Z"', "-62135596800"),
        (RFC, MILLIS, '"2023-11-14T22:13:20.125Z"', "1700000000125"),
        (RFC, MILLIS, '"2023-11-14T22:13:20.123456Z"', "1700000000123.456"),
        (RFC, MILLIS, '"1969-12-31T23:59:59.999Z"', "-1"),
        (RFC, MILLIS, "null", "null"),
        (RFC, UnixTime(type=Type.TEXT), '"2023-11-14T22:13:20Z"', '"1700000000"'),
        (rfc_3339(120), SECONDS, '"2023-11-15T00:13:20+02:00"', "1700000000"),
        (RFC, parse_pattern("dd/MM/yyyy HH:mm"), '"2023-11-14T22:13:00Z"', '"14/11/2023 22:13"'),
        (
            rfc_3339(-210),
            parse_pattern("yyyyMMddHHmmss", -210),
            '"2023-11-14T22:13:20-03:30"',
            '"20231114221320"',
        ),
        (
            RFC,
            parse_pattern("yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
            '"2023-11-14T22:13:20.125+05:00"',
            '"2023-11-14T22:13:20.125+05:00"',
        ),
        (parse_pattern("HH:mm"), parse_pattern("HHmm"), '"09:30"', '"0930"'),
    ],
)
def test_a_time_is_converted_between_two_notations(
    newer: MomentForm, older: MomentForm, written: str, other: str
) -> None:
    change = time(newer, older)
    assert spelt(change, written, upwards=False) == other
    assert spelt(change, other, upwards=True) == written


def test_digits_and_times_are_cut_if_the_other_notation_lacks_them() -> None:
    whole = time(RFC, UnixTime(digits=0))
    assert down(whole, {"f": "1969-12-31T23:59:58.75Z"}) == {"f": -2}
    date = time(RFC, parse_pattern("yyyy-MM-dd", 60))
    assert down(date, {"f": "2023-11-14T23:30:00Z"}) == {"f": "2023-11-15"}
    assert up(time(rfc_3339(60), parse_pattern("yyyy-MM-dd", 60)), {"f": "2023-11-15"}) == {
        "f": "2023-11-15T00:00:00+01:00"
    }


@pytest.mark.parametrize("document", [{}, {"f": None}])
def test_time_leaves_an_absent_or_null_value_unchanged(document: Json) -> None:
    assert up(time(RFC, SECONDS), document) == down(time(RFC, SECONDS), document) == document


def test_a_value_in_another_notation_is_refused() -> None:
    with fails("/f", "expected a time written as 2026-12-31T18:00:00Z, found something else"):
        down(time(RFC, SECONDS), {"f": "2023-11-14_22:13:20Z"})
    with fails("/f", "expected unix time in milliseconds, found something else"):
        spelt(time(RFC, MILLIS), "1e400", upwards=True)


NOTATIONS: dict[str, MomentForm] = {
    "unix": UnixTime(),
    "unix_ms": UnixTime(3),
    "rfc3339": RFC,
    **{
        pattern: parse_pattern(pattern)
        for pattern in (
            "yyyy-MM-dd'T'HH:mm:ss.SSSXX",
            "EEE, dd MMM yyyy HH:mm:ss 'GMT'",
            "EEEE, d. MMMM yyyy h:mm a",
            "dd/MMM/yyyy:HH:mm:ss Z",
            "M/d/yyyy H:mm",
            "yyyyMMddHHmmss",
            "yyyy-MM-dd",
            "MM/yyyy",
        )
    },
}


@LAW
@given(
    st.sampled_from([*NOTATIONS]),
    st.sampled_from([*NOTATIONS]),
    st.integers(-62135596800, 253402300799),
    st.from_regex(r"[0-9]{0,6}", fullmatch=True),
)
def test_a_time_keeps_what_both_notations_have(
    source: str, target: str, second: int, digits: str
) -> None:
    one, other = NOTATIONS[source], NOTATIONS[target]
    moment = one.read(one.write(Moment(second, digits)))
    there = other.write(moment)
    back = one.read(one.write(other.read(there)))
    assert other.write(back) == there or one.precision < other.precision
    if other.precision >= one.precision:
        assert back.second == moment.second
        assert back.fraction.rstrip("0") == moment.fraction.rstrip("0")


@pytest.mark.parametrize(
    "text",
    [
        *("2024-01-01T00:00:00Z", "2024-01-01t00:00:00z", "2024-01-01 00:00:00Z"),
        *("2024-01-01T00:00Z", "2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00-00:00"),
        *("2024-01-01T00:00:00+0000", "2024-01-01T00:00:00+00", "2024-01-01T05:30:00+05:30"),
        *("2023-12-31T20:30-0330", "2023-12-31T23:59:60Z", "2023-12-31T18:59:60.0-05:00"),
    ],
)
def test_each_writing_of_a_moment_is_the_same_unix_time(text: str) -> None:
    made = down(time(RFC, UnixTime()), {"f": text})
    assert made == {"f": 1704067200}


@pytest.mark.parametrize("text", ["1.7E9", "17e8", "1.7e+9", "17000000000E-1"])
def test_unix_time_may_have_an_exponent(text: str) -> None:
    assert UnixTime().read(text).second == 1_700_000_000
    for other in ("1e400", "1e999999999999999999999", "e", "nane", "Infinitye5"):
        with pytest.raises(ValueError, match="expected unix time in seconds"):
            UnixTime().read(other)


def test_a_moment_that_unix_time_could_not_return_is_refused() -> None:
    for text in ("9999-12-31T23:59:60Z", "0001-01-01T00:00:00+00:01"):
        with fails("/f", "expected a time in the years 1 to 9999, found another"):
            down(time(RFC, UnixTime()), {"f": text})


moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))


@LAW
@given(moments, st.integers(-1439, 1439), st.sampled_from([SECONDS, MILLIS]))
def test_a_converted_time_survives_a_round_trip(
    moment: datetime, zone: int, unix: UnixTime
) -> None:
    """The result equals the result of the standard library, exact to the microsecond."""
    change = time(rfc_3339(zone), unix)
    written = rfc_3339(zone).write(SECONDS.read("0"))
    assert written[:4] in ("1969", "1970")
    text = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    older = down(change, {"f": text})
    newer = up(change, older)
    assert isinstance(newer, dict)
    assert datetime.fromisoformat(newer["f"]) == moment
    assert datetime.fromisoformat(newer["f"]).utcoffset() == timedelta(minutes=zone)
    assert down(change, newer) == older
