"""The operator's access to a running gateway: the parts that the admin port reads and changes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from gateway.base.mistakes import suggest
from gateway.base.overrides import VersionKey
from gateway.findings.gate_curves import GateCurves
from gateway.findings.refused_rules import RefusedRules
from gateway.findings.uncompared import uncompared_operations
from gateway.observe.failing_targets import FailingService, FailingTarget, failing_services
from gateway.routing.snapshot import Snapshot
from gateway.store.state import State
from gateway.usage.delta import CounterDelta, Delta
from gateway.usage.totals import Totals
from gateway.verify.live.documented_operations import DocumentedOperations

# The seconds for which /readyz reports a failed task.
_FAILING_SECONDS = 60.0


class Rules(Protocol):
    latest: Snapshot
    content: bytes
    former: bytes | None
    since: float
    refused: RefusedRules | None
    loaded: int
    rejected: int
    folder: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Operator:
    """The parts of a running gateway that the admin port reads and changes.

    Attributes:
        unready: returns why the gateway cannot serve requests, or None if it can.
        problems: what is wrong with OpenAPI documents, by location.
        webhooks: whether each webhook fails, by name. Empty unless this gateway sends
            notifications.
        docs: the URL of the folder of the documentation, with a slash at its end; empty if
            it is unknown.
    """

    state: State
    reloader: Rules
    workers: Callable[[], int]
    unready: Callable[[], str | None]
    documented: DocumentedOperations
    targets: Callable[[], list[FailingTarget]] = list
    problems: Mapping[str, str] = field(default_factory=dict)
    curves: GateCurves = field(default_factory=GateCurves)
    webhooks: dict[str, bool] = field(default_factory=dict)
    docs: str = ""

    @property
    def totals(self) -> Totals:
        return self.state.totals

    @property
    def rules(self) -> Snapshot:
        return self.reloader.latest

    def count(self, kind: str, *labels: str) -> None:
        """Increment a counter. `metric_table.METRICS` lists the kinds and their labels."""
        one = CounterDelta(kind, labels, 1)
        self.state.absorb(Delta(time.time(), counts=[one]))

    def failing_tasks(self) -> list[str]:
        begin = time.monotonic() - _FAILING_SECONDS
        return sorted(name for name, at in self.totals.task_failed.items() if at > begin)

    def failing_services(self) -> list[FailingService]:
        """Return the services with failing targets. Times are by the clock of the fleet."""
        ahead = self.state.now - time.time()
        return [*failing_services(self.targets(), self.rules.services, ahead)]

    def certificate_expiries(self) -> dict[str, float]:
        """Return the expiry of each configured certificate in seconds since 1970, by its file."""
        return cast(dict[str, float], self.rules.derived.get("certificate_expiries", {}))

    async def uncompared(self, key: VersionKey, totals: Totals) -> list[str]:
        documented = await self.documented.find(self.rules, key)
        return uncompared_operations(key, totals, self.rules, documented)


def check_known(key: VersionKey, snapshot: Snapshot) -> None:
    """Raise ValueError with a message for the operator if the API or version is not configured."""
    api, version = key
    known = snapshot.labels
    if api not in known:
        raise ValueError(f"no API is called '{api}'; {suggest(api, known)}")
    if version not in known[api]:
        raise ValueError(f"{api} has no version '{version}'; {suggest(version, known[api])}")
