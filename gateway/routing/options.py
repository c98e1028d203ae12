"""Selects the version for an OPTIONS request that names no version, such as a CORS preflight."""

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

# The maximum number of plans for one preflight, regardless of the number of versions. Each plan
# visits all versions between the client's version and the service's version.
_MOST_PLANS = 8


def version_for_options(
    routes: Mapping[Version | None, Route],
    selector: Selector,
    chosen: tuple[Version, str] | None,
    head: RequestHead,
    context: RequestContext,
    path: Callable[[Route, Version], str],
    asked: Callable[[Route, RequestHead], tuple[object, str | Fault, object]],
) -> tuple[Version, str]:
    """Return the version for an OPTIONS request, and how it was chosen.

    A preflight cannot contain the header field for which it requests permission (Fetch, section
    4.8), and the list of allowed methods does not depend on a version. So if a default version has
    ended or lacks the operation, browsers must still be able to use the other versions. Versions
    that have the operation come first, and versions that would refuse it come last. Among equal
    versions, `chosen` comes first, then the newest version.

    Args:
        chosen: The selected version and how it was chosen; None if the request names no version.
        asked: Plans a request by a route. The second element of its result is a Fault if the
            request would be refused.
    """
    choices = {} if chosen is None else dict([chosen])
    for version in sorted(selector.supported.values(), reverse=True):
        choices.setdefault(version, NEWEST)
    offered = {selector.supported[label] for label in selector.offered(context)}

    def serves(version: Version) -> bool:
        route = routes.get(version)
        if route is None or version not in offered:
            return False
        return route.brownout is None or route.brownout.retry_at(context) is None

    serving = [version for version in choices if serves(version)]
    meant = next(iter(head.fields.getall(PREFLIGHT, ())), None)
    found = next(iter(serving or choices))
    if serving and meant is not None:
        about = head._replace(method=meant)
        ways = _OperationSearch(about, path)
        likely = islice(ways.ordered({one: routes[one] for one in serving}), _MOST_PLANS)
        fits = (one for one in likely if not isinstance(asked(routes[one], about)[1], Fault))
        found = next(fits, next(iter(choices)))
    return found, choices[found]


class _OperationSearch:
    """Finds the versions that have an operation. Each version is searched only once.

    Conversions of the query are not considered here. They are applied when the request is planned.
    """

    def __init__(self, about: RequestHead, path: Callable[[Route, Version], str]) -> None:
        self._method = about.method
        self._lines = parse_query(about.query)
        self._path = path
        # The key is a version and the service's version. The value is the first version between
        # them that has the operation.
        self._first: dict[tuple[Version, Version | None], Version | None] = {}

    def ordered(self, routes: Mapping[Version, Route]) -> Iterator[Version]:
        """Yield the versions that have the operation, then all other versions.

        Several versions are equivalent if their conversions share the remaining steps, beginning at
        the version with the operation. Only the first of them is yielded.
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
    """Convert the methods that a service allows to the methods that the client can use.

    The methods are in the order of the service. Methods for which the service has another path come
    last.
    """
    operation_paths = _operation_paths(conversions, path, query)
    # The service has declared operations at these methods, for which clients use other methods.
    named = {one.method for method, one in operation_paths.items() if any(one.operations)} - {
        "HEAD"
    }
    places = {method: place for place, method in enumerate(allowed)}
    found = {method: place for method, place in places.items() if method not in _METHODS}
    for method, one in operation_paths.items():
        if one.substitute is not None:
            offered = one.substitute.service is not None
        elif any(one.operations):  # the methods that the service allows at other paths are unknown
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
    """Return the methods of the client's path that the service provides at other paths.

    If all operations of a path have moved, the service returns 404 for any other method there. A
    service of the client's version would return 405. But the 404 may also come from an undeclared
    operation that is still at the path. So the result is empty in two cases: a declared operation
    is still at the path, or a path that ends with a capture, such as `/users/{id}`, has moved
    without GET.
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
