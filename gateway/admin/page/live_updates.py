"""Live updates: an event stream (text/event-stream) that makes open pages reload.

Events have only a name. A change of this gateway's state is sent at once. Counts, and the
heartbeats of other replicas, cause no event, so pages also reload on each `beat`. A
page that receives no `beat` reports that the gateway does not respond.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

from aiohttp import web

from gateway.admin.page.rendering import HEADERS
from gateway.findings.operator import Operator

MOST_STREAMS = 32
"""The maximum number of streams. A page without a stream tries again later."""
# The seconds between checks for changes, and the number of checks between two `beat` events.
_INTERVAL = 0.5
_BEAT_EVERY = 10


class LiveUpdates:
    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._addresses: dict[object, str] = {}  # by stream, oldest streams first
        self._closing = asyncio.Event()

    def close(self) -> None:
        self._closing.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        headers = {**HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        response = web.StreamResponse(headers=headers)
        self._take_place(response, request.remote or "")
        try:
            await response.prepare(request)
            async for name in self._events(response):
                await response.write(_event(name))
        except ConnectionError:
            pass  # the page was closed
        finally:
            self._addresses.pop(response, None)
        return response

    def _take_place(self, stream: object, address: str) -> None:
        """Add a stream; at the limit, replace the oldest one of the address with the most.

        A stream is not added if its address already has about as many streams as that address. So a
        client cannot displace the streams of others.
        """
        if len(self._addresses) >= MOST_STREAMS:
            held = Counter(self._addresses.values())
            ((most, number),) = held.most_common(1)
            if number <= held[address] + 1:
                return
            del self._addresses[next(one for one, of in self._addresses.items() if of == most)]
        self._addresses[stream] = address

    async def _events(self, stream: object) -> AsyncIterator[str]:
        """Yield `start`, then `changed` after each change, `beat` at intervals; last, `full`.

        `full` means that the stream was not admitted or was replaced. It is an event because a
        script cannot read the HTTP status of a stream.
        """
        state, checks = self._state(), 0
        if stream in self._addresses:
            yield "start"
        while stream in self._addresses and not self._closing.is_set():
            try:
                async with asyncio.timeout(_INTERVAL):
                    await self._closing.wait()
            except TimeoutError:
                checks += 1
            latest = self._state()
            if latest != state:
                state, checks = latest, 0
                yield "changed"
            elif checks >= _BEAT_EVERY:
                checks = 0
                yield "beat"
        if not self._closing.is_set():
            yield "full"

    def _state(self) -> tuple[object, ...]:
        """Return values that differ after each change by an operator or a gate."""
        operator = self._operator
        return (
            operator.state.in_force,
            operator.reloader.loaded,
            operator.reloader.rejected,
            operator.state.stale_since,
            operator.unready(),
        )


def _event(name: str) -> bytes:
    return f"event: {name}\ndata:\n\n".encode()
