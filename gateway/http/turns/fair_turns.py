"""Fair turns: one at a time, and clients in turn, however many of its own each has waiting."""

import asyncio

from gateway.http.turns.fair_line import FairLine


class FairTurns:
    """Grants one turn at a time, to each network of clients in turn."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting = FairLine[None]()

    def took(self) -> bool:
        """Take the turn if nobody has it; return whether that was so."""
        free = not self._taken
        self._taken = True
        return free

    async def take(self, network: str) -> None:
        """Return when it is the turn of this caller, who ends it by `end`."""
        if self.took():
            return
        turn = self._waiting.join(network)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end()  # the turn came just as the wait ended
            raise

    def end(self) -> None:
        """End the turn; the next network has its own."""
        turn = self._waiting.pop()
        if turn is None:
            self._taken = False
        else:
            turn.set_result(None)
