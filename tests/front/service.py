"""A service that returns what it receives, in a separate thread."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web


class Service:
    """The service and what it has received.

    Attributes:
        seen: the header fields of the last request, with lower-case names.
        read: is set once the client has received the first event of `/events`.
    """

    def __init__(self) -> None:
        self.port = 0
        self.seen: dict[str, str] = {}
        self.read = threading.Event()

    async def person(self, request: web.Request) -> web.Response:
        self.seen = {name.lower(): value for name, value in request.headers.items()}
        origin = f"{self.seen['x-forwarded-proto']}://{self.seen['x-forwarded-host']}"
        return web.json_response(
            {"fullName": "Bob"}, headers={"Location": f"{origin}{request.path}"}
        )

    async def upload(self, request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Send a second event only after the client has received the first one."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        received = await asyncio.to_thread(self.read.wait, 20)
        await response.write(b"data: 2\n\n" if received else b"data: late\n\n")
        return response

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket


@contextmanager
def started_service() -> Iterator[Service]:
    service = Service()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_get("/person", service.person)
    app.router.add_put("/bytes", service.upload)
    app.router.add_get("/events", service.events)
    app.router.add_get("/socket", service.socket)
    runner = web.AppRunner(app)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def listen() -> int:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return int(runner.addresses[0][1])

    service.port = asyncio.run_coroutine_threadsafe(listen(), loop).result(20)
    try:
        yield service
    finally:
        service.read.set()
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(20)
        # Closed transports release their sockets in a later iteration.
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
