"""The operator: what is asked of and changed in a running gateway through the admin port."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.config.text.mistakes import suggest
from gateway.core.overrides import VersionKey
from gateway.core.snapshot import Snapshot
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_writer import StateWriter
from gateway.state.totals import Totals
from gateway.telemetry import log


class Rules(Protocol):
    """The rules of a running gateway; see `gateway.process.reloader`."""

    latest: Snapshot
    loaded: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Operator:
    """What the admin port answers from.

    Attributes:
        writer: of what was counted and overridden.
        overrides: changes the overrides.
        cutovers: moves cutovers.
        reloader: has the rules in force.
        workers: returns how many processes serve.
        unready: says why the gateway cannot serve, or returns None if it can.
    """

    writer: StateWriter
    overrides: ActiveOverrides
    cutovers: CutoverController
    reloader: Rules
    workers: Callable[[], int]
    unready: Callable[[], str | None]

    @property
    def totals(self) -> Totals:
        """What was counted."""
        return self.writer.totals

    @property
    def rules(self) -> Snapshot:
        """The rules in force."""
        return self.reloader.latest

    async def reset_shadow(self, key: VersionKey) -> None:
        """Begin anew what the shadow of a version finds, in all workers; may raise TimeoutError."""
        await self.overrides.apply_again()
        self.totals.reset_shadow(key)
        self.cutovers.reset_shadow(key)
        await self.writer.write()
        log.event("shadow_reset", api=key[0], version=key[1])


def check_known(key: VersionKey, snapshot: Snapshot) -> None:
    """Raise ValueError, with a sentence for the operator, where the rules have no such version."""
    api, version = key
    known = snapshot.labels
    if api not in known:
        raise ValueError(f"no API is called '{api}'; {suggest(api, known)}")
    if version not in known[api]:
        raise ValueError(f"{api} has no version '{version}'; {suggest(version, known[api])}")
