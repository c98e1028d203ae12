"""Parsing of `traceparent` (W3C Trace Context, section 3.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.trace_parent import TraceParent, is_not_sampled, parse_traceparent
from tests.gateway.world import LAW

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("text", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),  # other flags are reserved for later versions
        (f"00-{TRACE}-{SPAN}-fe", False),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", True),
        (f"cc-{TRACE}-{SPAN}-01.what-the-future-brings", None),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}-01\n", None),
        (f"00-{TRACE}-{SPAN}-1", None),
        (f"00-{TRACE[1:]}-{SPAN}-01", None),
        ("", None),
    ],
)
def test_traceparent_is_parsed_or_ignored_if_invalid(text: str, sampled: bool | None) -> None:
    expected = None if sampled is None else TraceParent(TRACE, SPAN, sampled)
    assert parse_traceparent(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-00", True),
        (f"00-{TRACE}-{SPAN}-01", False),
        (f"00-{TRACE}-{SPAN}-02", False),  # programs that do not know the flag must not forward it
        (f"cc-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-00-more", False),
        (f"00-{TRACE}-{SPAN}-00\n", False),
        (f"00-{'0' * 32}-{SPAN}-00", False),
        (f"00-{TRACE}-{'0' * 16}-00", False),
        (f"00-{TRACE.upper()}-{SPAN}-00", False),
        ("", False),
    ],
)
def test_only_an_unsampled_field_of_the_first_version_is_forwarded_unchanged(
    text: str, expected: bool
) -> None:
    assert is_not_sampled(text) is expected
    if expected:
        assert parse_traceparent(text) == TraceParent(text[3:35], SPAN, sampled=False)


IDS = st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1)


@LAW
@given(*IDS, st.booleans())
def test_a_written_field_can_be_parsed(trace: int, span: int, sampled: bool) -> None:
    made = TraceParent(f"{trace:032x}", f"{span:016x}", sampled)
    assert parse_traceparent(made.field.decode()) == made
