"""Uncompared operations: operations of a version for which no response was ever compared.

The operations are taken from the version's OpenAPI document. Without a document, they are the
operations that clients have used. HEAD counts as GET. OPTIONS and TRACE are ignored, since they do
not concern a version's resources.
"""

from collections.abc import Collection

from gateway.base.overrides import VersionKey
from gateway.routing.snapshot import Snapshot
from gateway.usage.delta import OTHER, OperationName
from gateway.usage.operations import Documented
from gateway.usage.totals import Totals

_LEFT_OUT = frozenset({"OPTIONS", "TRACE", OTHER})
_MAX_NAMED = 5


def uncompared_operations(
    key: VersionKey,
    totals: Totals,
    rules: Snapshot,
    documented: Documented,
) -> list[str]:
    compared = _counted(totals, "operations_compared", key)
    known = (
        _counted(totals, "operations", key)
        if documented is None
        else {(each.method, each.endpoint) for each in documented}
    )
    endpoints = {each.template.text for each in rules.router if each.api == key[0]}
    missing = {
        (endpoint, _method(method))
        for method, endpoint in known
        if endpoint in endpoints and method not in _LEFT_OUT
    } - {(endpoint, _method(method)) for method, endpoint in compared}
    return [f"{method} {endpoint}" for endpoint, method in sorted(missing)]


def is_served_elsewhere(key: VersionKey, totals: Totals, rules: Snapshot) -> bool:
    return any(
        route.version != route.service_version or route.cutover or route.shadow
        for route in rules.routes(key)
    ) or any(totals.counted("operations_compared", *key))


def listed(operations: Collection[str]) -> str:
    named = ", ".join([*operations][:_MAX_NAMED])
    more = len(operations) - _MAX_NAMED
    return f"{named}, and {more} more" if more > 0 else named


def _method(method: str) -> str:
    return "GET" if method == "HEAD" else method


def _counted(totals: Totals, kind: str, key: VersionKey) -> set[OperationName]:
    return {(labels[-2], labels[-1]) for labels, _ in totals.counted(kind, *key)}
