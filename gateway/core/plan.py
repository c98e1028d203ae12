"""The plan: what will be done with one request, decided before anything is done.

`plan` is pure: the live path, the `explain` command and the tests call this one function.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gateway.core.errors import Code, Fault
from gateway.core.head import Head
from gateway.core.selection import Selected
from gateway.core.snapshot import Endpoint, Leg, Snapshot


class Plan(NamedTuple):
    """Ask the service of a leg.

    Attributes:
        endpoint: where the request came in.
        leg: how the version is served.
        mechanism: what named the version: a mechanism, `default` or `newest`; None where the
            API has no versions.
        target: the path and query to ask the service for, raw.
    """

    endpoint: Endpoint
    leg: Leg
    mechanism: str | None
    target: str


class Options(NamedTuple):
    """Answer an OPTIONS request here and now (RFC 9110, section 9.3.7)."""

    endpoint: Endpoint
    allow: str


class Refusal(NamedTuple):
    """Answer with a fault; `endpoint` is None where the path names none."""

    endpoint: Endpoint | None
    fault: Fault


Outcome = Plan | Options | Refusal


def plan(snapshot: Snapshot, head: Head) -> Outcome:
    """Return what to do with a request: routing, then the method, then the version."""
    found = snapshot.router.find(head.path)
    if found is None:
        return Refusal(None, Fault(Code.NOT_FOUND, "No endpoint has this path."))
    endpoint, captures = found
    if endpoint.methods is not None and head.method not in endpoint.methods:
        allow = ", ".join(dict.fromkeys((*endpoint.methods, "OPTIONS")))
        if head.method == "OPTIONS":
            return Options(endpoint, allow)
        return Refusal(
            endpoint,
            Fault(
                Code.METHOD_NOT_ALLOWED,
                f"This endpoint answers {allow}.",
                fields=((b"Allow", allow.encode()),),
            ),
        )
    chosen = _choose(endpoint, head, captures)
    if isinstance(chosen, Fault):
        return Refusal(endpoint, chosen)
    leg, mechanism = chosen
    path = head.path
    if leg.upstream_path is not None:
        path = leg.upstream_path.fill({**captures, "version": str(leg.served)})
    target = path if head.query is None else f"{path}?{head.query}"
    return Plan(endpoint, leg, mechanism, target)


def _choose(
    endpoint: Endpoint, head: Head, captures: Mapping[str, str]
) -> tuple[Leg, str | None] | Fault:
    selector = endpoint.selector
    if selector is None:
        return endpoint.legs[None], None
    selected = selector.select(
        [(reader, reader.read(head, captures)) for reader in selector.readers]
    )
    if isinstance(selected, Selected):
        by = selected.reader.mechanism if selected.reader is not None else "default"
        return endpoint.legs[selected.version], by
    if head.method == "OPTIONS" and selected.code is Code.VERSION_MISSING:
        # A CORS preflight cannot carry the header that it asks leave for (Fetch, section 4.8), and
        # what a resource allows is not a representation: the newest version answers.
        return endpoint.legs[max(selector.supported.values())], "newest"
    return selected
