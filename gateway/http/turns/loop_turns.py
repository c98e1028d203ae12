"""LoopTurns: what costs much on the event loop leaves others their turns."""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

from gateway.base.errors import FaultError
from gateway.http.turns.fair_turns import FairTurns

# For so many seconds, calls are made in a turn of the event loop; further ones wait for the next.
_A_TURN = 0.001
_T = TypeVar("_T")


class LoopTurns:
    """Makes calls on the event loop: few in a turn of it, and for networks of clients in turn.

    Args:
        patience: for how many seconds a call waits for others.
        impatient: returns the fault of a call that has waited for so long.
    """

    def __init__(self, patience: float, impatient: Callable[[], FaultError]) -> None:
        self._patience = patience
        self._impatient = impatient
        self._turns = FairTurns()
        self._spent = 0.0

    async def run(self, call: Callable[[], _T], network: Callable[[], str]) -> _T:
        """Make a call when it is its turn, and return what it returns.

        Args:
            call: the function that is called.
            network: returns the network of the client; it is asked for if the call has to wait.

        Raises:
            FaultError: others took too long, or the call has raised it.
        """
        if not self._turns.took():
            try:
                async with asyncio.timeout(self._patience):
                    await self._turns.take(network())
            except TimeoutError:
                raise self._impatient() from None
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._turn_over)
        began = perf_counter()
        try:
            return call()
        finally:
            self._spent += perf_counter() - began
            if self._spent < _A_TURN:
                self._turns.end()

    def _turn_over(self) -> None:
        if self._spent >= _A_TURN:
            self._turns.end()
        self._spent = 0.0
