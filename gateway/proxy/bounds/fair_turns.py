"""Fair turns: one at a time, and clients in turn, however many of its own each has waiting."""

import asyncio
from collections import deque


class FairTurns:
    """Grants one turn at a time, to each network of clients in turn."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, network: str) -> None:
        """Return when it is the turn of this caller, who ends it by `end`."""
        if not self._taken:
            self._taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(network, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end()  # the turn came just as the wait ended
            raise

    def end(self) -> None:
        """End the turn; the next network has its own."""
        while self._waiting:
            network = next(iter(self._waiting))
            turns = self._waiting.pop(network)
            turn = turns.popleft()
            if turns:
                self._waiting[network] = turns  # behind all others
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False
