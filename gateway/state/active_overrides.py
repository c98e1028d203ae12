"""The overrides in force: operators and gates change them, and they outlive the process."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import msgspec

from gateway.core.overrides import NO_OVERRIDES, Overrides, VersionKey
from gateway.state.state_writer import StateWriter
from gateway.telemetry import log

_NAME = "overrides"
Apply = Callable[[Overrides], Awaitable[None]]


class ActiveOverrides:
    """Holds the overrides, keeps them, and applies them wherever requests are answered.

    Args:
        writer: keeps them across restarts.

    Attributes:
        in_force: the overrides of the moment.
    """

    def __init__(self, writer: StateWriter) -> None:
        self._writer = writer
        self._turn = asyncio.Lock()
        self._apply: Apply | None = None
        self.in_force = overrides_of(writer.documents)

    def follow(self, apply: Apply) -> None:
        """Set what applies overrides from here on."""
        self._apply = apply

    async def pause(self, key: VersionKey) -> None:
        """Pause the brownouts of a version; in force when this returns. May raise TimeoutError."""
        await self._change(lambda now: replace(now, paused=now.paused | {key}))
        log.event("brownout_paused", api=key[0], version=key[1])

    async def resume(self, key: VersionKey) -> None:
        """Let the brownouts of a version go on; in force when this returns; may raise likewise."""
        await self._change(lambda now: replace(now, paused=now.paused - {key}))
        log.event("brownout_resumed", api=key[0], version=key[1])

    async def set_percent(self, key: VersionKey, percent: float | None, why: str) -> None:
        """Set the percentage of a cutover, or with None let the rules say it; may raise likewise.

        Args:
            key: whose cutover.
            percent: from 0 to 100.
            why: for the log.
        """

        def changed(now: Overrides) -> Overrides:
            percents = {other: value for other, value in now.percents.items() if other != key}
            return replace(
                now, percents=percents if percent is None else {**percents, key: percent}
            )

        await self._change(changed)
        log.event("cutover_set", api=key[0], version=key[1], percent=percent, reason=why)

    async def settle(self) -> None:
        """Return when all that was counted until now has been handed on; may raise likewise.

        A process hands it on before it acknowledges overrides, and the same can be applied again.
        """
        async with self._turn:
            if self._apply is not None:
                await self._apply(self.in_force)

    async def _change(self, change: Callable[[Overrides], Overrides]) -> None:
        async with self._turn:
            self.in_force = change(self.in_force)
            await self._writer.keep(_NAME, as_json(self.in_force))
            if self._apply is not None:
                await self._apply(self.in_force)


class _Percent(msgspec.Struct):
    api: str
    version: str
    percent: float


class _Kept(msgspec.Struct):
    paused: list[VersionKey]
    percents: list[_Percent]


def as_json(overrides: Overrides) -> dict[str, object]:
    """Return what JSON can say of overrides."""
    return {
        "paused": sorted(overrides.paused),
        "percents": [
            {"api": api, "version": version, "percent": percent}
            for (api, version), percent in sorted(overrides.percents.items())
        ],
    }


def overrides_of(documents: Mapping[str, object]) -> Overrides:
    """Return the overrides that were kept among other documents."""
    document = documents.get(_NAME)
    if document is None:
        return NO_OVERRIDES
    try:
        kept = msgspec.convert(document, _Kept)
    except msgspec.ValidationError as error:
        # Only a hand has changed it so; to serve by the rules alone is what it asked for last.
        log.event("orders_lost", "error", reason=str(error))
        return NO_OVERRIDES
    percents = {(each.api, each.version): each.percent for each in kept.percents}
    return Overrides(frozenset(kept.paused), percents)
