"""The paths by which a later version is asked for the operation of a request."""

from collections.abc import Mapping

from gateway.base.request import RequestHead
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.link_directory import LinkDirectory, PublicEndpoint
from gateway.conversion.operations.operation_path import find_operation_path
from gateway.conversion.parameter_change import QUERY, parse_query, write_query
from gateway.lifecycle.lifecycle import EndpointLifecycle, Successor
from gateway.versions.version import Version


def successor_paths(
    directory: LinkDirectory,
    endpoint: PublicEndpoint,
    lifecycle: EndpointLifecycle,
    head: RequestHead,
    captures: Mapping[str, str],
) -> Mapping[str, str]:
    """Return the link values of a request: the captures, the port, and the paths of the operation.

    There is a path for each later version in which operations differ.

    Query parameters that the later version cannot have do not count. Where it has no such
    operation, or no endpoint leads to it, the path is that of the same endpoint.

    Args:
        directory: Finds the endpoint of a path.
        endpoint: The endpoint of the request.
        lifecycle: The lifecycle of its version.
        head: The head of the request.
        captures: The raw captures of its path.
    """
    values = lifecycle.link_values(captures, head)
    if not lifecycle.operations_differ:
        return values
    found = dict(values)
    for one in lifecycle.successors:
        if one.conversions is not None:
            path = _path(directory, endpoint, one, head, captures)
            if path is None:
                path = endpoint.template.fill({**captures, "version": str(one.version)})
            found[one.operation_key] = one.with_query(path)
    return found


def _path(
    directory: LinkDirectory,
    endpoint: PublicEndpoint,
    successor: Successor,
    head: RequestHead,
    captures: Mapping[str, str],
) -> str | None:
    assert successor.conversions is not None
    route = endpoint.routes.get(successor.version)
    template = (None if route is None else route.upstream_path) or endpoint.template

    def path(version: Version) -> str:
        return template.fill({**captures, "version": str(version)})

    operation_path, query = None, head.query
    while operation_path is None:
        try:
            operation_path = find_operation_path(*successor.conversions, head.method, path, query)
        except ConversionError as error:
            rest = _without(query, error.place)
            if rest == query:
                return None
            query = rest
    if operation_path.substitute is not None or not any(operation_path.operations):
        return None
    public = directory.public(endpoint, successor.version, operation_path.path, captures)
    if public is None:
        return None
    # The other parameters are left out, as in all links to a later version.
    query = write_query([*operation_path.query_hops[-1].added])
    return public if query is None else f"{public}?{query}"


def _without(query: str | None, place: ErrorPlace) -> str | None:
    """Return a query without the parameters that an error is about."""
    names = place.names if isinstance(place, Beside) and place.what == QUERY.what else ()
    return write_query([line for line in parse_query(query) if line.key not in names])
