"""The room for what waits in tunnels: bytes that one side has sent and the other does not take."""

from collections.abc import Awaitable, Callable
from functools import partial

from gateway.http.bounds.waiting_bytes import WaitingBytes

_MOST = 32 * 1024 * 1024


class TunnelRoom:
    """Passes bytes through tunnels, and bounds those that wait in all of them together.

    A sender waits until its receiver has taken all of a piece, so at most one waits in each
    direction of a tunnel. If those of all take too much, the tunnel whose piece has waited for the
    longest gives way.

    Args:
        most: the maximum number of bytes that wait.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._waiting = WaitingBytes(most)

    async def pass_on(
        self,
        read: Callable[[], Awaitable[bytes]],
        write: Callable[[bytes], Awaitable[None]],
        give_way: Callable[[], None],
    ) -> None:
        """Pass bytes on in one direction of a tunnel, until the end of them.

        Args:
            read: returns the next piece, empty at the end.
            write: writes a piece, and returns once the receiver has taken it.
            give_way: ends the tunnel.
        """
        direction = partial(give_way)  # both directions of a tunnel are given the same function
        while piece := await read():
            self._waiting.hold(direction, len(piece))
            try:
                await write(piece)
            finally:
                self._waiting.release(direction)
