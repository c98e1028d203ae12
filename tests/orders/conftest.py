"""The orders service of version 3, and a gateway that serves versions 1 and 2 from it."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from tests.gateway.kit import DEADLINE, Program, start_program
from tests.orders.backend import HERE, Shop


@dataclass(frozen=True)
class Orders:
    gateway: Program
    port: int


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orders]:
    folder: Path = tmp_path_factory.mktemp("orders")
    with ExitStack() as stack:
        port = stack.enter_context(_Served()).port
        gateway = start_program(
            stack,
            folder,
            "gateway",
            GATEWAY_CONFIG=str(HERE / "gateway.yaml"),
            ORDERS=f"127.0.0.1:{port}",
        )
        yield Orders(gateway, port)


class _Served:
    def __init__(self) -> None:
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._runner = web.AppRunner(Shop().app(), access_log=None)
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> "_Served":
        self._thread.start()
        self._do(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, what: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(DEADLINE)

    async def _start(self) -> None:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
