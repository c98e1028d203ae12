"""The operator's access to a running gateway: the parts that the admin port reads and changes."""

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

# For how many seconds after its last failure a task is reported on /readyz.
_FAILING_SECONDS = 60.0


class Rules(Protocol):
    """The part of a Reloader that the admin port reads."""

    latest: Snapshot
    loaded: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Operator:
    """The parts of a running gateway that the admin port reads and changes.

    Attributes:
        writer: the holder and writer of the stored state.
        overrides: the overrides in force, with the methods that change them.
        cutovers: the controller that changes the state of cutovers.
        reloader: the holder of the rules in force.
        workers: a function that returns the number of serving processes.
        unready: a function that returns why the gateway cannot serve, or None if it can.
    """

    writer: StateWriter
    overrides: ActiveOverrides
    cutovers: CutoverController
    reloader: Rules
    workers: Callable[[], int]
    unready: Callable[[], str | None]

    @property
    def totals(self) -> Totals:
        """The sums of all counts."""
        return self.writer.totals

    @property
    def rules(self) -> Snapshot:
        """The rules in force."""
        return self.reloader.latest

    def failing_tasks(self, now: float) -> list[str]:
        """Return the names of the long-lived tasks that failed a short time before `now`."""
        return sorted(
            name
            for (name,), failures in self.totals.counted("task_failures")
            if now - failures.last < _FAILING_SECONDS
        )

    async def reset_shadow(self, key: VersionKey) -> None:
        """Delete the counts of the shadow of a version; may raise TimeoutError."""
        await self.overrides.apply_again()
        self.totals.reset_shadow(key)
        self.cutovers.reset_shadow(key)
        await self.writer.write()
        log.event("shadow_reset", api=key[0], version=key[1])


def check_known(key: VersionKey, snapshot: Snapshot) -> None:
    """Raise ValueError with a message for the operator if the rules lack the API or version."""
    api, version = key
    known = snapshot.labels
    if api not in known:
        raise ValueError(f"no API is called '{api}'; {suggest(api, known)}")
    if version not in known[api]:
        raise ValueError(f"{api} has no version '{version}'; {suggest(version, known[api])}")
