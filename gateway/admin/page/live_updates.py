"""Live updates: a stream of events (text/event-stream) that have open pages fetch themselves again.

An event has no content but its name: what is shown comes from the same address as the page itself.
A change of this gateway is sent at once. What others count and whether they are heard, only what is
shown has, so that pages look again with each beat; by its absence they notice a gateway that is
suspended.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

from aiohttp import web

from gateway.admin.page.rendering import HEADERS
from gateway.findings.operator import Operator

MOST_STREAMS = 32
"""The streams at a time; a page without one is told so, and asks again after a while."""
# How often is looked, in seconds; and how many looks pass between two beats.
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
        """Give a stream a place; of a full house that of the oldest of the address with the most.

        So nobody keeps the pages of others from being followed. Where no other address has more,
        it gets none.
        """
        if len(self._addresses) >= MOST_STREAMS:
            held = Counter(self._addresses.values())
            ((most, number),) = held.most_common(1)
            if number <= held[address] + 1:
                return
            del self._addresses[next(one for one, of in self._addresses.items() if of == most)]
        self._addresses[stream] = address

    async def _events(self, stream: object) -> AsyncIterator[str]:
        """Yield `start`, then `changed` if something was changed, and `beat` now and then.

        The last one is `full`, once the stream has no place. That is no 503, since scripts get to
        know no status of a stream.
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
        """Return what changes when somebody or a gate changes something."""
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
