"""A service that echoes the request, so that responses cannot be mixed up unnoticed.

python -m tests.soak.mirror

Runs as a separate process, as services do. The port is MIRROR_PORT, or any free port. With
MIRROR_CERTIFICATE, the service uses TLS with the files of this name that end in .pem and .key. The
address is MIRROR_HOST, or 127.0.0.1.
"""

import asyncio
import json
import os
import signal
import socket
import ssl
import struct
import sys
from collections import Counter

from aiohttp import WSMsgType, web

PIECE = 64 * 1024
_arrivals: Counter[str] = Counter()
_PATTERN = bytes(range(251)) * (PIECE // 251 + 2)


def pattern(size: int, offset: int = 0) -> bytes:
    start = offset % 251
    return _PATTERN[start : start + size]


def catalog(size: int) -> list[dict[str, object]]:
    return [
        {"id": number, "name": {"firstName": f"First{number}", "lastName": "Last"}, "price": 1.50}
        for number in range(size)
    ]


async def echo(request: web.Request) -> web.Response:
    told = {"path": request.path_qs, "request_id": request.headers.get("X-Request-Id")}
    if "MIRROR_CERTIFICATE" in os.environ:  # `vault.test`, a service with several addresses
        transport = request.transport
        assert transport is not None
        told["address"] = transport.get_extra_info("sockname")[0]
    return web.json_response(told)


async def give(request: web.Request) -> web.StreamResponse:
    size = int(request.query["size"])
    response = web.StreamResponse()
    if "sized" in request.query:
        response.content_length = size
    await response.prepare(request)
    for offset in range(0, size, PIECE):
        await response.write(pattern(min(PIECE, size - offset), offset))
    return response


async def take(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    async for piece in request.content.iter_any():
        await response.write(piece)
    return response


async def documents(request: web.Request) -> web.Response:
    """Respond with a document: the one in the body, or an array of the length in the query.

    Documents with an Idempotency-Key are counted by their key.
    """
    if request.method == "POST":
        if (key := request.headers.get("Idempotency-Key")) is not None:
            _arrivals[key] += 1
        return web.json_response(body=await request.read())
    return web.json_response(catalog(int(request.query["size"])))


async def arrivals(_: web.Request) -> web.Response:
    return web.json_response(_arrivals)


async def converse(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
    return socket


async def cut(request: web.Request) -> web.StreamResponse:
    """Send a part of a response, then reset the connection, or close it without close_notify."""
    response = web.StreamResponse()
    response.content_length = 1_000_000
    await response.prepare(request)
    await response.write(pattern(1000))
    transport = request.transport
    assert transport is not None
    connection = transport.get_extra_info("socket")
    if request.query["by"] == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        connection.shutdown(socket.SHUT_WR)
    return response


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_get("/echo/{token}", echo)
    app.router.add_get("/bytes", give)
    app.router.add_put("/bytes", take)
    app.router.add_route("*", "/catalog", documents)
    app.router.add_get("/arrivals", arrivals)
    app.router.add_get("/socket", converse)
    app.router.add_get("/cut", cut)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    tls = None
    if certificate := os.environ.get("MIRROR_CERTIFICATE"):
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(f"{certificate}.pem", f"{certificate}.key")
    port = int(os.environ.get("MIRROR_PORT", "0"))
    host = os.environ.get("MIRROR_HOST", "127.0.0.1")
    await web.TCPSite(runner, host, port, ssl_context=tls).start()
    url = "http://{}:{}".format(*runner.addresses[0][:2])
    sys.stdout.write(json.dumps({"event": "listening", "url": url}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
