"""Service failures: services with failing targets, in all replicas."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gateway.findings.formatting import moment_text, plural
from gateway.observe.failing_targets import FailingService
from gateway.store.state import FleetView

# The maximum number of replicas that a subject names.
_NAMED = 3


class ServiceFailure(NamedTuple):
    """A service with failing targets.

    Attributes:
        subject: its name and, in a fleet, the replicas in which they fail.
        whole: whether all of its targets fail.
        since: the first failure, in seconds since 1970.
        text: the details, as sentences.
    """

    subject: str
    whole: bool
    since: float
    text: str


def service_failures(
    replica: str, here: Sequence[FailingService], fleet: FleetView
) -> Iterator[ServiceFailure]:
    """Yield the services with failing targets, once for all replicas with the same failures.

    Args:
        replica: the name of this gateway.
        here: the failures in this gateway.
        fleet: all replicas, with the failures of their latest heartbeats.
    """
    found: dict[tuple[object, ...], list[tuple[str, FailingService]]] = {}
    others = [
        (each.replica, each.failing)
        for each in fleet.replicas
        if each.presence == "heard" and each.replica != replica
    ]
    for name, services in [(replica, here), *others]:
        for one in services:
            listed = sorted(error.target for error in one.listed)
            alike = one.service, one.targets, one.failing, *listed
            found.setdefault(alike, []).append((name, one))
    for group in found.values():
        first = min((one for _, one in group), key=lambda each: each.since)
        place = f" in {_named([name for name, _ in group])}" if others else ""
        yield ServiceFailure(first.service + place, first.whole, first.since, _text(first))


def _named(replicas: list[str]) -> str:
    more = len(replicas) - _NAMED
    named = ", ".join(replicas[:_NAMED])
    return f"{named} and {more:,} more" if more > 0 else named


def _text(service: FailingService) -> str:
    failing = service.failing
    begin = f"{failing:,} of {service.targets:,} {plural(service.targets, 'target')}"
    listed = [
        f"{each.target} since {moment_text(each.since)}"
        f" ({each.error or 'health checks find it down'})"
        for each in service.listed
    ]
    if failing > len(listed):
        listed.append(f"and {failing - len(listed):,} more")
    then = "Its requests fail" if service.whole else "The others take its requests"
    return (
        f"{begin} {'fails' if failing == 1 else 'fail'}: {', '.join(listed)}. {then}. Look"
        " whether it runs, and whether the gateway reaches it."
    )
