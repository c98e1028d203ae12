"""The desk: what operators ask of a running gateway, answered from the parts that know."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.config.report import suggest
from gateway.core.lifecycle import Terms
from gateway.core.orders import Served
from gateway.core.snapshot import Leg, Snapshot
from gateway.operation import log
from gateway.operation.control import Control
from gateway.operation.keeper import Keeper
from gateway.operation.ledger import Ledger
from gateway.operation.reload import Reloader
from gateway.operation.shift import Shift


@dataclass(frozen=True, slots=True)
class Desk:
    """What the admin port answers from.

    Attributes:
        keeper: of what was counted and ordered.
        control: changes the orders.
        shift: moves cutovers.
        reloader: has the rules in force.
        workers: returns how many processes serve.
        unready: says why the gateway cannot serve, or returns None if it can.
    """

    keeper: Keeper
    control: Control
    shift: Shift
    reloader: Reloader
    workers: Callable[[], int]
    unready: Callable[[], str | None]

    @property
    def ledger(self) -> Ledger:
        """What was counted."""
        return self.keeper.ledger

    @property
    def rules(self) -> Snapshot:
        """The rules in force."""
        return self.reloader.latest

    async def reset_shadow(self, served: Served) -> None:
        """Begin anew what the shadow of a version finds, in all workers; may raise TimeoutError."""
        await self.control.settle()
        self.ledger.forget_shadow(served)
        self.shift.forget_shadow(served)
        await self.keeper.write()
        log.event("shadow_reset", api=served[0], version=served[1])


def legs_of(snapshot: Snapshot, served: Served) -> Iterator[Leg]:
    """Yield how a version is served, endpoint by endpoint."""
    api, version = served
    for endpoint in snapshot.router:
        for label, leg in endpoint.legs.items():
            if endpoint.api == api and str(label) == version:
                yield leg


def terms_of(snapshot: Snapshot, served: Served) -> Terms | None:
    """Return how a version ends, whether anybody serves it still or not; None if it does not."""
    api, version = served
    for endpoint in snapshot.router:
        lifecycles = [leg.lifecycle for leg in endpoint.legs.values()]
        for lifecycle in (*lifecycles, *endpoint.retired.values()):
            if endpoint.api == api and lifecycle and str(lifecycle.terms.version) == version:
                return lifecycle.terms
    return None


def versions_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the labels of the versions of each API, those included that nobody serves."""
    found: dict[str, dict[str, None]] = {}
    for endpoint in snapshot.router:
        labels = found.setdefault(endpoint.api, {})
        labels |= {str(label): None for label in (*endpoint.retired, *endpoint.legs) if label}
    return {api: list(labels) for api, labels in found.items()}


def check_known(served: Served, snapshot: Snapshot) -> None:
    """Raise ValueError, with a sentence for the operator, where the rules have no such version."""
    api, version = served
    known = versions_of(snapshot)
    if api not in known:
        raise ValueError(f"no API is called '{api}'; {suggest(api, known)}")
    if version not in known[api]:
        raise ValueError(f"{api} has no version '{version}'; {suggest(version, known[api])}")
