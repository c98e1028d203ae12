"""ActiveOverrides: the overrides in force; operators and gates change them."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace

import msgspec

from gateway.base.overrides import NO_OVERRIDES, Overrides, VersionKey
from gateway.observe import log
from gateway.store.ledger import BY_GATEWAY, Ledger, Order

PAUSED, RUNNING = "paused", "running"
"""Whether brownouts are paused, in a word."""
_NAME = "overrides"
Apply = Callable[[Overrides], Awaitable[None]]


class ActiveOverrides:
    """Holds the overrides, stores them, and applies them in every process that serves.

    One change is made at a time: its holder sees to that.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._apply: Apply | None = None
        self.in_force = overrides_of(ledger.documents)

    def follow(self, apply: Apply) -> None:
        """Set the function that applies overrides from here on."""
        self._apply = apply

    async def pause(self, key: VersionKey, order: Order) -> None:
        """Pause the brownouts of a version; in force on return.

        Raises:
            ChangedMeanwhileError: they are paused, or not, otherwise than was seen.
            TimeoutError: a worker has not confirmed it.
        """
        await self._set_paused(key, order, paused=True)
        self._ledger.announce("brownout_paused", api=key[0], version=key[1])

    async def resume(self, key: VersionKey, order: Order) -> None:
        """End the pause of brownouts; in force on return; raises as `pause` does."""
        await self._set_paused(key, order, paused=False)
        self._ledger.announce("brownout_resumed", api=key[0], version=key[1])

    async def set_percent(
        self,
        key: VersionKey,
        percent: float | None,
        why: str,
        order: Order = BY_GATEWAY,
        by_rules: float | None = None,
    ) -> None:
        """Set the percentage of a cutover, or with None remove it. May raise TimeoutError.

        Args:
            key: the version that is cut over.
            percent: from 0 to 100; None for that of the rules.
            why: the reason, for the log.
            order: who wants it; it is the gateway's decision otherwise.
            by_rules: the percentage of the rules; None if they have no such cutover.
        """
        order = order if order.why else order._replace(why=why)
        percents = {**self.in_force.percents}
        before = _percent_text(percents.pop(key, None), by_rules)
        if percent is not None:
            percents[key] = percent
        self._ledger.record(order, "cutover", key, before, _percent_text(percent, by_rules))
        await self._put(replace(self.in_force, percents=percents))
        self._ledger.announce(
            "cutover_set", api=key[0], version=key[1], percent=percent, reason=why
        )

    async def apply_again(self) -> None:
        """Apply the overrides in force once more. May raise TimeoutError.

        Each process delivers what it has counted before it confirms overrides, so that on return
        the totals have all that was counted until now.
        """
        if self._apply is not None:
            await self._apply(self.in_force)

    async def adopt(self) -> None:
        """Apply the overrides that the ledger has by now. May raise TimeoutError."""
        self.in_force = overrides_of(self._ledger.documents)
        await self.apply_again()

    async def _set_paused(self, key: VersionKey, order: Order, *, paused: bool) -> None:
        now = self.in_force.paused
        text = f"The brownouts are {'paused' if key in now else 'not paused'} now."
        order.check_seen(PAUSED if key in now else RUNNING, text)
        what, after = (
            ("brownout pause", now | {key}) if paused else ("brownout resume", now - {key})
        )
        self._ledger.record(order, what, key, _pause_text(key, now), _pause_text(key, after))
        await self._put(replace(self.in_force, paused=after))

    async def _put(self, overrides: Overrides) -> None:
        self.in_force = overrides
        await self._ledger.keep(_NAME, as_json(overrides))
        await self.apply_again()


class _Percent(msgspec.Struct):
    api: str
    version: str
    percent: float


class _Kept(msgspec.Struct):
    paused: list[VersionKey]
    percents: list[_Percent]


def _pause_text(key: VersionKey, paused: Collection[VersionKey]) -> str:
    return "paused" if key in paused else "by the rules"


def _percent_text(percent: float | None, by_rules: float | None) -> str:
    if percent is not None:
        return f"{percent:g}%"
    return "by the rules" if by_rules is None else f"{by_rules:g}% by the rules"


def as_json(overrides: Overrides) -> dict[str, object]:
    """Return overrides as a JSON value."""
    return {
        "paused": sorted(overrides.paused),
        "percents": [
            {"api": api, "version": version, "percent": percent}
            for (api, version), percent in sorted(overrides.percents.items())
        ],
    }


def overrides_of(documents: Mapping[str, object]) -> Overrides:
    """Return the overrides that were stored among other documents."""
    document = documents.get(_NAME)
    if document is None:
        return NO_OVERRIDES
    try:
        kept = msgspec.convert(document, _Kept)
    except msgspec.ValidationError as error:
        # Only a person can have changed it so; the rules alone are the safe choice.
        log.event("overrides_lost", "error", reason=str(error))
        return NO_OVERRIDES
    percents = {(each.api, each.version): each.percent for each in kept.percents}
    return Overrides(frozenset(kept.paused), percents)
