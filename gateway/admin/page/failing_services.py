"""Failing services: the services with targets that fail, of one gateway, for people."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gateway.admin.formatting import moment_text, plural
from gateway.core.service import Service
from gateway.telemetry.target_watch import TargetTrouble

# So many targets are listed with their errors.
_LISTED = 3


class FailingService(NamedTuple):
    """A service with targets that fail.

    Attributes:
        service: its name.
        targets: the number of its targets.
        troubles: those that fail, each once, the first to fail first.
    """

    service: str
    targets: int
    troubles: list[TargetTrouble]

    @property
    def whole(self) -> bool:
        """Whether each of its targets fails."""
        return len(self.troubles) >= self.targets

    @property
    def since(self) -> float:
        """When it became so, in seconds since 1970."""
        return max(each.since for each in self.troubles)

    @property
    def text(self) -> str:
        """All of that, as sentences."""
        failing = len(self.troubles)
        begin = f"{failing:,} of {self.targets:,} {plural(self.targets, 'target')}"
        listed = [
            f"{each.target} since {moment_text(each.since)}"
            f" ({each.error or 'health checks find it down'})"
            for each in self.troubles[:_LISTED]
        ]
        if failing > _LISTED:
            listed.append(f"and {failing - _LISTED:,} more")
        then = "Its requests fail" if self.whole else "The others take its requests"
        return (
            f"{begin} {'fails' if failing == 1 else 'fail'}: {', '.join(listed)}. {then}. Look"
            " whether it runs, and whether the gateway reaches it."
        )


def failing_services(
    troubles: Iterable[TargetTrouble], services: Mapping[str, Service]
) -> Iterator[FailingService]:
    """Yield the services with targets that fail.

    Args:
        troubles: the targets that fail, once for each process in which they do.
        services: those of the rules, by name.
    """
    found: dict[str, dict[str, TargetTrouble]] = {}
    for each in sorted(troubles, key=lambda one: one.since):
        found.setdefault(each.service, {}).setdefault(each.target, each)
    for name, first in found.items():
        service = services.get(name)
        known = set() if service is None else {each.authority for each in service.targets}
        failing = [trouble for target, trouble in first.items() if target in known]
        if failing:
            yield FailingService(name, len(known), failing)
