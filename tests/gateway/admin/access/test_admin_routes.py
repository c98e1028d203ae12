"""The routes of the admin port: what a request expects, and what none of them is for."""

import asyncio
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.admin.access.admin_answers import json_answer, problems
from gateway.admin.access.admin_routes import add_routes


async def answered(head: str, body: bytes = b"") -> list[bytes]:
    """Return what a port with one path answers, by its lines; the body is sent once it may be."""

    async def take(request: web.Request) -> web.Response:
        return json_answer((await request.read()).decode())

    app = web.Application(middlewares=[problems])
    add_routes(app, [web.put("/known", take)])
    server = TestServer(app)
    await server.start_server(lingering_time=0)  # no test sends the body that it announced
    async with server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(f"{head}\r\nHost: a\r\nConnection: close\r\n\r\n".encode("latin-1"))
        if body:
            assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
            writer.write(body)
        lines = (await reader.read()).split(b"\r\n")
        writer.close()
    return lines


@pytest.mark.parametrize("target", ["/known", "/unknown", "/a%0Ab", "*", "a:1"])
@pytest.mark.parametrize("value", ["200-ok", "\xff", "100-continue, 200-ok", "100-continue\xff"])
async def test_what_cannot_be_met(value: str, target: str) -> None:
    method = {"*": "OPTIONS", "a:1": "CONNECT"}.get(target, "PUT")
    lines = await answered(f"{method} {target} HTTP/1.1\r\nContent-Length: 1\r\nExpect: {value}")
    assert lines[0] == b"HTTP/1.1 417 Expectation Failed"
    assert b"Content-Type: application/problem+json" in lines
    assert json.loads(lines[-1])["detail"] == "Only 100-continue can be expected."


async def test_a_body_is_asked_for() -> None:
    head = "PUT /known HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-Continue"
    lines = await answered(head, b"hi")
    assert lines[1] == b"HTTP/1.1 200 OK"
    assert lines[-1] == b'"hi"'


async def test_http_1_0_expects_nothing() -> None:
    lines = await answered("PUT /known HTTP/1.0\r\nExpect: 200-ok")
    assert lines[0] == b"HTTP/1.0 200 OK"


async def test_another_path_and_another_method() -> None:
    assert (await answered("PUT /unknown HTTP/1.1"))[0] == b"HTTP/1.1 404 Not Found"
    assert (await answered("CONNECT a:1 HTTP/1.1"))[0] == b"HTTP/1.1 404 Not Found"
    lines = await answered("GET /known HTTP/1.1")
    assert lines[0] == b"HTTP/1.1 405 Method Not Allowed"
    assert b"Allow: PUT" in lines
