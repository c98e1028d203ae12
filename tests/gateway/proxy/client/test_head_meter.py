"""The meter of unfinished heads: however the bytes are cut, it counts what the next head has."""

from aiohttp.http import HttpVersion11, RawRequestMessage
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from gateway.proxy.client.head_meter import HeadMeter


def message(length: int | str | None = None, *, chunked: bool = False) -> RawRequestMessage:
    fields = {} if length is None else {"Content-Length": str(length)}
    headers = CIMultiDictProxy(CIMultiDict(fields))
    return RawRequestMessage(
        "GET", "/", HttpVersion11, headers, (), False, None, False, chunked, URL("/")
    )


def request(body: bytes | None, padding: int) -> bytes:
    length = b"" if body is None else b"Content-Length: %d\r\n" % len(body)
    head = b"GET / HTTP/1.1\r\nHost: a\r\n" + length + b"A: " + b"a" * padding + b"\r\n\r\n"
    return head + (body or b"")


BODIES = st.none() | st.binary(max_size=40) | st.just(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n")


@given(
    st.lists(st.tuples(BODIES, st.integers(0, 30)), min_size=1, max_size=5),
    st.lists(st.integers(1, 300), max_size=12),
)
def test_the_meter_agrees_with_the_framing(
    requests: list[tuple[bytes | None, int]], cuts: list[int]
) -> None:
    """What the parser would say at each cut is known here, as is what the meter should count."""
    text, heads, ends = b"", [], []
    for body, padding in requests:
        start = len(text)
        text += request(body, padding)
        heads.append(
            (text.index(b"\r\n\r\n", start) + 4, message(None if body is None else len(body)))
        )
        ends.append(len(text))
    meter, at = HeadMeter(), 0
    for cut in [*sorted(set(cuts)), len(text)]:
        cut = min(cut, len(text))
        data, before = text[at:cut], text[:at]
        fresh = [each for end, each in heads if at < end <= cut]
        in_body = any(end <= at < over for (end, _), over in zip(heads, ends, strict=True))
        if fresh:
            meter.add_requests(data, before, fresh)
        elif in_body:
            over = min(each for each in ends if each > at)
            meter.add_body(data, content=bool(data), ended=over <= cut)
        else:
            meter.add_head(data)
        begun = [over for over in (0, *ends) if over <= cut][-1]
        arriving = any(end <= cut < over for (end, _), over in zip(heads, ends, strict=True))
        assert meter.unfinished == (0 if arriving else cut - begun)
        at = cut


def test_framing_without_content_is_counted() -> None:
    meter = HeadMeter()
    meter.add_requests(b"POST / HTTP/1.1\r\n\r\n", b"", [message(chunked=True)])
    meter.add_body(b"5;" + b"x" * 100, content=False, ended=False)
    assert meter.unfinished == 102
    meter.add_body(b"\r\nabcde\r\n", content=True, ended=False)
    assert meter.unfinished == 0
    meter.add_body(b"0\r\nA: a\r\n", content=False, ended=False)
    assert meter.unfinished == 9
    meter.add_body(b"\r\n", content=False, ended=True)
    assert meter.unfinished == 0


def test_a_length_that_no_machine_takes_ends_the_count() -> None:
    meter = HeadMeter()
    head = b"POST / HTTP/1.1\r\nContent-Length: " + b"0" * 5000 + b"\r\n\r\n"
    meter.add_requests(head + b"GET", b"", [message("0" * 5000)])
    assert meter.unfinished == 0


def test_empty_lines_between_requests_are_no_head() -> None:
    meter = HeadMeter()
    meter.add_requests(request(None, 3) + b"\r\n", b"", [message()])
    assert meter.unfinished == 0
