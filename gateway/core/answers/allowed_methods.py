"""The methods that a client may use, for those that a service allows where operations differ."""

from collections.abc import Callable, Collection

from gateway.core.conversion.chain import Conversion
from gateway.core.conversion.document import ConversionError
from gateway.core.conversion.passage import find_passage
from gateway.core.versions.version import Version

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def client_methods(
    conversions: tuple[Conversion, Conversion],
    path: Callable[[Version], str],
    query: str | None,
    asked: str,
    allowed: Collection[str],
) -> list[str]:
    """Return the methods by which a client of a path reaches one that the service allows.

    Args:
        conversions: The conversion of requests, and that of their answers.
        path: Returns the path that a service of a version is asked for.
        query: The query of the request.
        asked: The path that the service was asked for.
        allowed: The methods that the service allows there.
    """
    passages = {}
    for method in _METHODS:
        try:
            passages[method] = find_passage(*conversions, method, path, query)
        except ConversionError:
            continue
    # What the service takes by the method of a declared operation, clients ask for by another.
    named = {one.method for method, one in passages.items() if any(one.operations)} - {"HEAD"}
    found = []
    for method, one in passages.items():
        if one.substitute is not None:
            offered = one.substitute.service is not None
        elif any(one.operations):  # of another path, it is not known what the service allows
            offered = one.path != asked or one.method in allowed
        else:
            offered = one.path == asked and method in allowed and method not in named
        if offered:
            found.append(method)
    return found
