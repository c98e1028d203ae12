"""Live updates: a stream of events (text/event-stream), upon which open pages load again.

An event has only a name. A change of this gateway is sent at once. The counts and heartbeats of
other replicas are in the page only, so pages also load again with each `beat`. A page that receives
no beat reports that the gateway does not respond.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

from aiohttp import web

from gateway.admin.page.rendering import HEADERS
from gateway.findings.operator import Operator

MOST_STREAMS = 32
"""The maximum number of streams; a page without one tries again after a while."""
# The seconds between two checks for changes, and the number of checks between two beats.
_INTERVAL = 0.5
_BEAT_EVERY = 10


class LiveUpdates:
    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._addresses: dict[object, str] = {}  # by stream, the oldest first
        self._closing = asyncio.Event()

    def close(self) -> None:
        self._closing.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a stream of events, until the page or the gateway is gone."""
        headers = {**HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        response = web.StreamResponse(headers=headers)
        self._take_place(response, request.remote or "")
        try:
            await response.prepare(request)
            async for name in self._events(response):
                await response.write(_event(name))
        except ConnectionError:
            pass  # the page is gone
        finally:
            self._addresses.pop(response, None)
        return response

    def _take_place(self, stream: object, address: str) -> None:
        """Add a stream; at the bound, replace the oldest one of the address that has the most.

        An address that already has as many as any other gets none, so nobody can displace others.
        """
        if len(self._addresses) >= MOST_STREAMS:
            held = Counter(self._addresses.values())
            ((most, number),) = held.most_common(1)
            if number <= held[address] + 1:
                return
            del self._addresses[next(one for one, of in self._addresses.items() if of == most)]
        self._addresses[stream] = address

    async def _events(self, stream: object) -> AsyncIterator[str]:
        """Yield `start`, then `changed` after a change, `beat` at intervals, and `full` at the end.

        `full` is sent to a stream that has no place: a script cannot read the status of a stream.
        """
        state, looks = self._state(), 0
        if stream in self._addresses:
            yield "start"
        while stream in self._addresses and not self._closing.is_set():
            try:
                async with asyncio.timeout(_INTERVAL):
                    await self._closing.wait()
            except TimeoutError:
                looks += 1
            latest = self._state()
            if latest != state:
                state, looks = latest, 0
                yield "changed"
            elif looks >= _BEAT_EVERY:
                looks = 0
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
