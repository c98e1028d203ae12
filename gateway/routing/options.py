"""The version that answers an OPTIONS request, as a CORS preflight, which names none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from gateway.base.errors import Fault
from gateway.base.request import RequestContext, RequestHead
from gateway.conversion.chain import Conversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.operation_path import OperationPath, find_operation_path
from gateway.conversion.parameter_change import parse_query
from gateway.conversion.version_step import Direction, VersionStep
from gateway.routing.cors import PREFLIGHT
from gateway.routing.snapshot import Route
from gateway.versions.selection import NEWEST, Selector
from gateway.versions.version import Version

# A plan of a request walks through all versions up to that of the service. So many plans are made
# for a preflight at most, however many versions there are.
_MOST_PLANS = 8


def answering(
    routes: Mapping[Version | None, Route],
    selector: Selector,
    chosen: tuple[Version, str] | None,
    head: RequestHead,
    context: RequestContext,
    path: Callable[[Route, Version], str],
    asked: Callable[[Route, RequestHead], tuple[object, str | Fault, object]],
) -> tuple[Version, str]:
    """Return the version that answers, and what chose it.

    A preflight cannot carry the header field that it requests permission for (Fetch, section 4.8),
    and the allowed methods are no representation of a version. So the end of a default version, or
    its lack of an operation, must not keep browsers from the others. A version that is known to
    have the operation comes first, one that would refuse it last; of equal ones that which was
    chosen, then the newest.
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


class _Ways:
    """Finds which versions have an operation, and looks through each version once.

    The changes of queries on the way are left out: the plan of a request applies them.

    Args:
        about: The head of a request for the operation.
        path: Returns the path that a service of a version is asked for by a route.
    """

    def __init__(self, about: RequestHead, path: Callable[[Route, Version], str]) -> None:
        self._method = about.method
        self._lines = parse_query(about.query)
        self._path = path
        # The first version that has the operation, on the way from one version to a service.
        self._first: dict[tuple[Version, Version | None], Version | None] = {}

    def ordered(self, routes: Mapping[Version, Route]) -> Iterator[Version]:
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

    def _find(self, route: Route) -> Version | None:
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

    def _has(self, version_step: VersionStep, route: Route) -> bool:
        sides = (
            (version_step.table, version_step.source),
            (version_step.lacked, version_step.target),
        )
        return any(
            table is not None
            and table.find(self._method, self._path(route, version), self._lines) is not None
            for table, version in sides
        )


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def client_methods(
    conversions: tuple[Conversion, Conversion],
    path: Callable[[Version], str],
    query: str | None,
    asked: str,
    allowed: Sequence[str],
) -> list[str]:
    """Return the methods by which a client of a path reaches one that the service allows.

    They are in the order of the service; those that it has at another path come last.

    Args:
        path: Returns the path that a service of a version is asked for.
        asked: The path that the service was asked for.
        allowed: The methods that the service allows there.
    """
    operation_paths = _operation_paths(conversions, path, query)
    # What the service takes by the method of a declared operation, clients ask for by another.
    named = {one.method for method, one in operation_paths.items() if any(one.operations)} - {
        "HEAD"
    }
    places = {method: place for place, method in enumerate(allowed)}
    found = {method: place for method, place in places.items() if method not in _METHODS}
    for method, one in operation_paths.items():
        if one.substitute is not None:
            offered = one.substitute.service is not None
        elif any(one.operations):  # of another path, it is not known what the service allows
            offered = one.path != asked or one.method in places
        else:
            offered = one.path == asked and method in places and method not in named
        if offered:
            here = one.substitute is None and one.path == asked
            found[method] = places[one.method] if here else len(places)
    return sorted(found, key=found.__getitem__)


def methods_elsewhere(
    conversions: tuple[Conversion, Conversion],
    path: Callable[[Version], str],
    query: str | None,
    asked: str,
) -> list[str]:
    """Return the methods of a path in the client's version that the service has at other paths.

    A service that has nothing at such a path answers 404 to any other method, where a service of
    the client's version would have answered 405. Its 404 may also be that of an operation which
    has stayed there without being declared. So nothing is returned where a declared operation has
    stayed, or where a path that ends with a capture, such as `/users/{id}`, can still be read.
    """
    newer = conversions[0].direction is Direction.DOWN
    found: list[str] = []
    item = False
    for method, one in _operation_paths(conversions, path, query).items():
        if one.substitute is not None:
            if one.substitute.service is not None:
                found.append(method)
        elif operation := next(filter(None, one.operations), None):
            if one.path == asked:
                return []
            side = operation.side(newer=newer)
            item = item or (side is not None and side.template.segments[-1].capture is not None)
            found.append(method)
    return [] if item and "GET" not in found else found


def _operation_paths(
    conversions: tuple[Conversion, Conversion], path: Callable[[Version], str], query: str | None
) -> dict[str, OperationPath]:
    operation_paths: dict[str, OperationPath] = {}
    for method in _METHODS:
        with suppress(ConversionError):
            operation_paths[method] = find_operation_path(*conversions, method, path, query)
    return operation_paths
