"""The acceptor: waiting connections are accepted in a few iterations of the event loop."""

import asyncio
import socket
from contextlib import ExitStack

import uvloop

from gateway.process.listening import Acceptor

WAITING = 40


class Counted(asyncio.Protocol):
    made = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Counted.made += 1
        transport.close()


def test_several_connections_are_accepted_per_event_loop_iteration() -> None:
    async def turns(listener: socket.socket) -> int:
        acceptor = await Acceptor.open(Counted, listener)
        taken = 0
        while Counted.made < WAITING:
            await asyncio.sleep(0)
            taken += 1
        acceptor.close()
        return taken

    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=WAITING))
        address = listener.getsockname()
        for _ in range(WAITING):
            stack.enter_context(socket.create_connection(address))
        assert uvloop.run(turns(listener)) < WAITING / 2
    with socket.socket() as late:
        assert late.connect_ex(address)  # the listening socket is closed
