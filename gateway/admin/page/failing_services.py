"""Failing services: the services with targets that fail, of one gateway, for people."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gateway.admin.formatting import moment_text, plural
from gateway.core.service import Service
from gateway.telemetry.target_watch import FailingTarget

# So many targets are listed with their errors.
_LISTED = 3


class FailingService(NamedTuple):
    """A service with targets that fail.

    Attributes:
        service: its name.
        targets: the number of its targets.
        failing: those that fail, each once, the first to fail first.
    """

    service: str
    targets: int
    failing: list[FailingTarget]

    @property
    def whole(self) -> bool:
        """Whether each of its targets fails."""
        return len(self.failing) >= self.targets

    @property
    def since(self) -> float:
        """When it became so, in seconds since 1970."""
        return max(each.since for each in self.failing)

    @property
    def text(self) -> str:
        """All of that, as sentences."""
        count = len(self.failing)
        begin = f"{count:,} of {self.targets:,} {plural(self.targets, 'target')}"
        listed = [
            f"{each.target} since {moment_text(each.since)}"
            f" ({each.error or 'health checks find it down'})"
            for each in self.failing[:_LISTED]
        ]
        if count > _LISTED:
            listed.append(f"and {count - _LISTED:,} more")
        then = "Its requests fail" if self.whole else "The others take its requests"
        return (
            f"{begin} {'fails' if count == 1 else 'fail'}: {', '.join(listed)}. {then}. Look"
            " whether it runs, and whether the gateway reaches it."
        )


def failing_services(
    failing: Iterable[FailingTarget], services: Mapping[str, Service]
) -> Iterator[FailingService]:
    """Yield the services with targets that fail.

    Args:
        failing: the targets that fail, once for each process in which they do.
        services: those of the rules, by name.
    """
    found: dict[str, dict[str, FailingTarget]] = {}
    for each in sorted(failing, key=lambda one: one.since):
        found.setdefault(each.service, {}).setdefault(each.target, each)
    for name, first in found.items():
        service = services.get(name)
        known = set() if service is None else {each.authority for each in service.targets}
        left = [each for target, each in first.items() if target in known]
        if left:
            yield FailingService(name, len(known), left)
