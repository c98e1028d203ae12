"""Rarely used parts of HTTP that conformance checkers test."""

import asyncio

import pytest

from tests.gateway.kit import StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, ask, connect, get


async def test_options_asterisk_is_answered_by_the_gateway(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """RFC 9110, section 9.3.7, defines `OPTIONS *`."""
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port))
    answer = await get(program, "OPTIONS *")
    assert (answer.status, answer.body) == (204, b"")
    assert (await get(program, "OPTIONS http://api.test")).status == 204  # RFC 9112, section 3.2.4
    for path in ("/nowhere", "http://api.test/", "http://api.test?a"):
        assert (await get(program, f"OPTIONS {path}")).status == 404
    assert not scripted.requests


async def test_max_forwards_is_decremented_for_options_and_trace(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The gateway decrements the value, and responds itself at 0 (RFC 9110, section 7.6.2)."""
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port))
    traced = await get(program, "TRACE /plain", "Max-Forwards: 0")
    assert (traced.status, traced["allow"]) == (405, "OPTIONS")
    assert (await get(program, "OPTIONS /plain", "Max-Forwards: 0")).status == 204
    assert (await get(program, "OPTIONS /nowhere", "Max-Forwards: 0")).status == 404
    assert not scripted.requests
    sent = [("TRACE", "1", "0"), ("OPTIONS", "10", "9"), ("OPTIONS", "x", "x"), ("GET", "0", "0")]
    for method, given, forwarded in sent:
        assert (await get(program, f"{method} /plain", f"Max-Forwards: {given}")).status == 200
        head = bytes(scripted.requests[-1]).lower()
        assert b"max-forwards: %b\r\n" % forwarded.encode() in head


@pytest.mark.parametrize("minor", [2, 9])
async def test_later_minor_versions_of_http_are_treated_as_1_1(
    reloaded: StartGateway, upstream: StartUpstream, minor: int
) -> None:
    """Later minor versions count as 1.1, however the bytes arrive (RFC 9110, section 2.5)."""
    scripted = await upstream(OK)
    program = reloaded(rules(scripted.port))
    whole = ask("POST /plain", "Content-Length: 4", body=b"1234")
    later = whole.replace(b"HTTP/1.1", b"HTTP/1.%d" % minor)
    at = later.index(b"HTTP/")
    async with connect(program) as client:
        pieces = [later, later + whole + later, later[:3], later[3:at], later[at : at + 8]]
        for piece in [*pieces, later[at + 8 : at + 30], later[at + 30 : -2], later[-2:]]:
            client.send(piece)
            await asyncio.sleep(0.05)
        answers = [await client.answer() for _ in range(5)]
    assert [(each.status, each.body) for each in answers] == [(200, b"ok")] * 5
    assert len(scripted.requests) == 5
    for forwarded in scripted.requests:
        assert b" HTTP/1.1\r\n" in forwarded
        assert bytes(forwarded).endswith(b"\r\n\r\n1234")


async def test_large_bodies_of_later_minor_versions_arrive_complete(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    """The head arrives together with more body bytes than are parsed at a time."""
    scripted = await upstream(OK)
    program = reloaded(rules(scripted.port))
    large = bytes(200_000)
    async with connect(program) as client:
        client.send(
            ask("POST /plain", "Content-Length: 200000", body=large).replace(b"1.1", b"1.2", 1)
        )
        assert (await client.answer()).status == 200
        client.send(ask("GET /plain"))
        assert (await client.answer()).status == 200
    assert bytes(scripted.requests[0]).endswith(b"\r\n\r\n" + large)


async def test_body_lines_that_look_like_later_http_versions_are_not_requests(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    """This includes bytes after more pipelined requests than the parser queues."""
    scripted = await upstream(OK)
    program = reloaded(rules(scripted.port))
    body = b"GET / HTTP/1.2\r\n\r\nGET / HTTP/1.2\r\n\r\n"
    many = [ask("GET /plain").replace(b"1.1", b"1.2", 1), *[ask("GET /plain")] * 39]
    async with connect(program) as client:
        client.send(b"".join(many) + ask("POST /plain", f"Content-Length: {len(body)}", body=body))
        answers = [await client.answer() for _ in range(41)]
    assert [each.status for each in answers] == [200] * 41
    assert len(scripted.requests) == 41
    assert bytes(scripted.requests[-1]).endswith(b"\r\n\r\n" + body)


async def test_any_method_name_reaches_the_service(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    """If an endpoint lists no methods, the service judges the method (RFC 9110, section 9.1)."""
    scripted = await upstream(OK)
    program = reloaded(rules(scripted.port))
    plain = ask("GET /plain")
    brew = ask("BREW /plain", "Content-Length: 4", body=b"1234")
    chunked = ask("x~9 /plain", "Transfer-Encoding: chunked", body=b"2\r\nab\r\n0\r\n\r\n")
    async with connect(program) as client:
        for piece in (brew, brew + plain + chunked, plain):
            client.send(piece)
            await asyncio.sleep(0.05)
        answers = [await client.answer() for _ in range(5)]
    assert [(each.status, each.body) for each in answers] == [(200, b"ok")] * 5
    asked = [bytes(each).partition(b" HTTP/1.1\r\n")[0] for each in scripted.requests]
    assert asked == [b"BREW /plain", b"BREW /plain", b"GET /plain", b"x~9 /plain", b"GET /plain"]
    assert bytes(scripted.requests[1]).endswith(b"\r\n\r\n1234")
    assert bytes(scripted.requests[3]).endswith(b"\r\n\r\n2\r\nab\r\n0\r\n\r\n")


async def test_an_unknown_method_in_pieces_is_parsed_completely(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK)
    program = reloaded(rules(scripted.port))
    plain = ask("GET /plain")
    brew = plain.replace(b"GET", b"BREW")
    whole = [(brew[:at], brew[at:]) for at in (1, 2, 4, 5, 9, len(brew) - 2)]
    for pieces in (*whole, tuple(brew[at : at + 1] for at in range(len(brew)))):
        async with connect(program) as client:
            for piece in (*pieces, plain):
                client.send(piece)
                await asyncio.sleep(0.01)
            answers = [await client.answer() for _ in range(2)]
        assert [each.status for each in answers] == [200, 200]
        asked = [bytes(each).partition(b" ")[0] for each in scripted.requests]
        assert asked == [b"BREW", b"GET"]
        scripted.requests.clear()
    preface = plain.replace(b"GET", b"PRI")  # PRI begins HTTP/2 (RFC 9113, section 3.4)
    cut = [(preface[:at], preface[at:]) for at in (2, 9, preface.index(b"Host"))]
    for pieces in (
        (b"BR", b"\r\n" + plain),
        (b"BREW /plain HTTP/1.1\r\n", plain),
        (preface,),
        *cut,
    ):
        async with connect(program) as client:
            for piece in pieces:
                client.send(piece)
                await asyncio.sleep(0.05)
            assert (await client.answer()).status == 400
            assert await client.rest() == b""
    assert not scripted.requests


TIGHT = "limits: {{ target: 512, header_bytes: 4096, header_seconds: {} }}\n"
# The bytes after a refused method, and the status.
UNREADABLE = {
    "a field": (b" /plain HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    "the version": (b" /plain HTTP/3.0\r\nHost: a\r\n\r\n", 400),
    "a chunk": (b" /plain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", 400),
    "the target": (b" /" + b"x" * 600 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    "the fields": (b" /plain HTTP/1.1\r\nHost: a\r\n" + b"X: yy\r\n" * 700, 431),
    "the time": (b" /plain HTTP/1.1\r\nHost: a\r\n", 408),
}


@pytest.mark.parametrize("pieces", [1, 2, 9])
@pytest.mark.parametrize(("rest", "status"), UNREADABLE.values(), ids=UNREADABLE)
async def test_a_refusal_of_head_has_no_content(
    reloaded: StartGateway, upstream: StartUpstream, rest: bytes, status: int, pieces: int
) -> None:
    """A response to HEAD has no content (RFC 9110, section 9.3.2), even for an unparseable request.

    The request arrives in one piece, split in its method, or in many pieces, and after another
    request with a different method.
    """
    limits = TIGHT.format(1 if status == 408 else 60)
    program = reloaded(limits + rules((await upstream(OK)).port))
    for method, other in ((b"HEAD", "GET"), (b"GET", "HEAD")):
        data = method + rest
        async with connect(program) as client:
            client.send(ask(f"{other} /plain"))
            assert (await client.answer(bodiless=other == "HEAD")).status == 200
            for piece in [data[at : at + 2] for at in range(0, 2 * pieces - 2, 2)]:
                client.send(piece)
                await asyncio.sleep(0.02)
            client.send(data[2 * pieces - 2 :])
            answer = await client.answer(bodiless=method == b"HEAD")
            assert (answer.status, answer["content-type"]) == (status, "application/problem+json")
            assert len(answer.body) == (0 if method == b"HEAD" else int(answer["content-length"]))
            assert await client.rest() == b""
