"""The version that answers an OPTIONS request, as a CORS preflight, which names none."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Generic, Protocol, TypeVar

from gateway.base.context import RequestContext
from gateway.base.errors import Fault
from gateway.base.request import HeaderLookup, RequestHead
from gateway.conversion.chain import Conversion
from gateway.conversion.parameter_change import parse_query
from gateway.conversion.version_step import VersionStep
from gateway.lifecycle.brownout import VersionBrownout
from gateway.versions.chosen_by import NEWEST
from gateway.versions.selection import Selector
from gateway.versions.version import Version

PREFLIGHT = "Access-Control-Request-Method"
"""The header field of a preflight that names the method which it asks about."""
# A plan of a request walks through all versions up to that of the service. So many plans are made
# for a preflight at most, however many versions there are.
_MOST_PLANS = 8


def is_preflight(method: str, fields: HeaderLookup) -> bool:
    """Return whether a request is a preflight of CORS (Fetch, section 3.2.2)."""
    return (
        method == "OPTIONS"
        and bool(fields.getall(PREFLIGHT, ()))
        and bool(fields.getall("Origin", ()))
    )


class Interrupted(Protocol):
    """The part of a route that decides whether it answers preflights."""

    @property
    def brownout(self) -> VersionBrownout | None:
        """When the version is refused for a while."""

    @property
    def request(self) -> Conversion | None:
        """The conversion of requests; None where the service speaks the version."""

    @property
    def service_version(self) -> Version | None:
        """The version that the service implements."""


_R = TypeVar("_R", bound=Interrupted)


def answering(
    routes: Mapping[Version | None, _R],
    selector: Selector,
    chosen: tuple[Version, str] | None,
    head: RequestHead,
    context: RequestContext,
    path: Callable[[_R, Version], str],
    asked: Callable[[_R, RequestHead], tuple[object, str | Fault, object]],
) -> tuple[Version, str]:
    """Return the version that answers, and what chose it.

    A preflight cannot carry the header field that it requests permission for (Fetch, section 4.8),
    and the allowed methods are no representation of a version. So the end of a default version, or
    its lack of an operation, must not keep browsers from the others. A version that is known to
    have the operation comes first, one that would refuse it last; of equal ones that which was
    chosen, then the newest.

    Args:
        routes: The routes of the endpoint.
        selector: Its versions.
        chosen: The version of the default or pin, and which of them it is; None without one.
        head: The head of the request.
        context: Who asks, and when.
        path: Returns the path that a service of a version is asked for by a route.
        asked: Returns, second, what the service of a route is asked for, or why it is not.
    """
    choices = {} if chosen is None else dict([chosen])
    for version in sorted(selector.supported.values(), reverse=True):
        choices.setdefault(version, NEWEST)
    offered = {selector.supported[label] for label in selector.offered(context)}

    def serves(version: Version) -> bool:
        route = routes.get(version)
        if route is None or version not in offered:
            return False
        return route.brownout is None or route.brownout.closes(context) is None

    serving = [version for version in choices if serves(version)]
    meant = next(iter(head.fields.getall(PREFLIGHT, ())), None)
    found = next(iter(serving or choices))
    if serving and meant is not None:
        about = head._replace(method=meant)
        ways = _Ways(about, path)
        likely = islice(ways.ordered({one: routes[one] for one in serving}), _MOST_PLANS)
        fits = (one for one in likely if not isinstance(asked(routes[one], about)[1], Fault))
        found = next(fits, next(iter(choices)))
    return found, choices[found]


class _Ways(Generic[_R]):
    """Finds which versions have an operation, and looks through each version once.

    The changes of queries on the way are left out: the plan of a request applies them.

    Args:
        about: The head of a request for the operation.
        path: Returns the path that a service of a version is asked for by a route.
    """

    def __init__(self, about: RequestHead, path: Callable[[_R, Version], str]) -> None:
        self._method = about.method
        self._lines = parse_query(about.query)
        self._path = path
        # The first version that has the operation, on the way from one version to a service.
        self._first: dict[tuple[Version, Version | None], Version | None] = {}

    def ordered(self, routes: Mapping[Version, _R]) -> Iterator[Version]:
        """Yield the versions that have the operation, then all others.

        Of those that share the way from where the operation is found, the first stands for all.
        """
        met: set[tuple[Version | None, Version | None]] = set()
        others: list[Version] = []
        for version, route in routes.items():
            first = self._find(route)
            way = first, route.service_version
            if first is None:
                others.append(version)
            elif way not in met:
                met.add(way)
                yield version
        yield from others

    def _find(self, route: _R) -> Version | None:
        passed: list[tuple[Version, Version | None]] = []
        found = None
        for version_step in () if route.request is None else route.request.version_steps:
            here = version_step.source, route.service_version
            if here in self._first:
                found = self._first[here]
                break
            passed.append(here)
            if self._has(version_step, route):
                found = version_step.source
                break
        self._first.update(dict.fromkeys(passed, found))
        return found

    def _has(self, version_step: VersionStep, route: _R) -> bool:
        sides = (
            (version_step.table, version_step.source),
            (version_step.lacked, version_step.target),
        )
        return any(
            table is not None
            and table.find(self._method, self._path(route, version), self._lines) is not None
            for table, version in sides
        )
