"""Control: the orders in force. Operators and gates change them; they outlive the process."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import msgspec

from gateway.core.orders import NO_ORDERS, Orders, Served
from gateway.operation import log
from gateway.operation.keeper import Keeper

_NAME = "orders"
Obey = Callable[[Orders], Awaitable[None]]


class Control:
    """Holds the orders, keeps them, and has them obeyed wherever requests are answered.

    Args:
        keeper: keeps them across restarts.

    Attributes:
        orders: in force.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._turn = asyncio.Lock()
        self._obey: Obey | None = None
        self.orders = orders_of(keeper.documents)

    def follow(self, obey: Obey) -> None:
        """Say who has to obey from here on."""
        self._obey = obey

    async def pause(self, served: Served) -> None:
        """Pause the brownouts of a version; in force when this returns. May raise TimeoutError."""
        await self._change(lambda now: replace(now, paused=now.paused | {served}))
        log.event("brownout_paused", api=served[0], version=served[1])

    async def resume(self, served: Served) -> None:
        """Let the brownouts of a version go on; in force when this returns; may raise likewise."""
        await self._change(lambda now: replace(now, paused=now.paused - {served}))
        log.event("brownout_resumed", api=served[0], version=served[1])

    async def shift(self, served: Served, percent: float | None, why: str) -> None:
        """Set the percentage of a cutover, or with None let the rules say it; may raise likewise.

        Args:
            served: whose cutover.
            percent: from 0 to 100.
            why: for the log.
        """

        def shifted(now: Orders) -> Orders:
            percents = {key: value for key, value in now.percents.items() if key != served}
            return replace(
                now, percents=percents if percent is None else {**percents, served: percent}
            )

        await self._change(shifted)
        log.event("cutover_set", api=served[0], version=served[1], percent=percent, reason=why)

    async def settle(self) -> None:
        """Return when all that was counted until now has been handed on; may raise likewise.

        Whoever obeys hands it on before saying so, and the same orders can be obeyed again.
        """
        async with self._turn:
            if self._obey is not None:
                await self._obey(self.orders)

    async def _change(self, change: Callable[[Orders], Orders]) -> None:
        async with self._turn:
            self.orders = change(self.orders)
            await self._keeper.keep(_NAME, as_json(self.orders))
            if self._obey is not None:
                await self._obey(self.orders)


class _Percent(msgspec.Struct):
    api: str
    version: str
    percent: float


class _Kept(msgspec.Struct):
    paused: list[Served]
    percents: list[_Percent]


def as_json(orders: Orders) -> dict[str, object]:
    """Return what JSON can say of orders."""
    return {
        "paused": sorted(orders.paused),
        "percents": [
            {"api": api, "version": version, "percent": percent}
            for (api, version), percent in sorted(orders.percents.items())
        ],
    }


def orders_of(documents: Mapping[str, object]) -> Orders:
    """Return the orders that were kept among other documents."""
    document = documents.get(_NAME)
    if document is None:
        return NO_ORDERS
    try:
        kept = msgspec.convert(document, _Kept)
    except msgspec.ValidationError as error:
        # Only a hand has changed it so; to serve by the rules alone is what it asked for last.
        log.event("orders_lost", "error", reason=str(error))
        return NO_ORDERS
    percents = {(each.api, each.version): each.percent for each in kept.percents}
    return Orders(frozenset(kept.paused), percents)
