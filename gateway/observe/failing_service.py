"""FailingService: a service with targets that fail, as a gateway tells other replicas."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from gateway.http.upstream.service import Service
from gateway.observe.target_watch import FailingTarget

# So many targets are listed with their errors.
_LISTED = 3
# Of the error of one, so many characters.
_ERROR = 200


class TargetError(msgspec.Struct, array_like=True, frozen=True):
    """A target that fails; since when, in seconds since 1970, and what failed at last."""

    target: str
    since: float
    error: str


class FailingService(msgspec.Struct, array_like=True, frozen=True):
    """A service with targets that fail.

    Attributes:
        service: its name.
        targets: the number of its targets.
        failing: the number of those that fail.
        since: when the latest of them began to, in seconds since 1970.
        listed: the first few of them to fail.
    """

    service: str
    targets: int
    failing: int
    since: float
    listed: list[TargetError]

    @property
    def whole(self) -> bool:
        """Whether each of its targets fails."""
        return self.failing >= self.targets


def failing_services(
    targets: Iterable[FailingTarget], services: Mapping[str, Service], ahead: float = 0.0
) -> Iterator[FailingService]:
    """Yield the services with targets that fail.

    Args:
        targets: the targets that fail, once for each process in which they do.
        services: those of the rules, by name.
        ahead: by how many seconds the time of the fleet is ahead of theirs.
    """
    found: dict[str, dict[str, FailingTarget]] = {}
    for each in sorted(targets, key=lambda one: one.since):
        found.setdefault(each.service, {}).setdefault(each.target, each)
    for name, first in found.items():
        service = services.get(name)
        known = set() if service is None else {each.authority for each in service.targets}
        failing = [
            TargetError(target, each.since + ahead, each.error[:_ERROR])
            for target, each in first.items()
            if target in known
        ]
        if failing:
            since = failing[-1].since
            yield FailingService(name, len(known), len(failing), since, failing[:_LISTED])
