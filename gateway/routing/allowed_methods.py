"""The methods that a client may use at a path, where operations differ between versions."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from gateway.conversion.chain import Conversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.operations.operation_path import OperationPath, find_operation_path
from gateway.conversion.version_link import Direction
from gateway.versions.version import Version

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
        conversions: The conversion of requests, and that of their answers.
        path: Returns the path that a service of a version is asked for.
        query: The query of the request.
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

    Args:
        conversions: The conversion of requests, and that of their answers.
        path: Returns the path that a service of a version is asked for.
        query: The query of the request.
        asked: The path that the service was asked for.
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
