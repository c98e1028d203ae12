"""The plan: what will be done with one request, decided before anything is done.

`plan` is pure: the live path, the `explain` command and the tests call this one function.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from gateway.core.errors import Code, Fault
from gateway.core.head import Head
from gateway.core.readers import AcceptReader
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
    """Return what to do with a request: routing, then the method, then the version.

    Where the path carries the version, one that is not on offer is a path that does not exist, so
    it is refused before the method is looked at.
    """
    found = snapshot.router.find(head.path)
    if found is None:
        return Refusal(None, Fault(Code.NOT_FOUND, "No endpoint has this path."))
    endpoint, captures = found
    chosen = _choose(endpoint, head, captures)
    if isinstance(chosen, Fault) and chosen.status == 404:
        return Refusal(endpoint, chosen)
    if endpoint.methods is not None and head.method not in endpoint.methods:
        return _other_method(endpoint, endpoint.methods, head.method)
    if isinstance(chosen, Fault):
        return Refusal(endpoint, chosen)
    leg, mechanism = chosen
    template = leg.upstream_path
    if template is None:
        path = head.path
    elif template.captures:
        path = template.fill({**captures, "version": str(leg.served)})
    else:
        path = template.text
    target = path if head.query is None else f"{path}?{head.query}"
    return Plan(endpoint, leg, mechanism, target)


def _other_method(endpoint: Endpoint, methods: tuple[str, ...], method: str) -> Options | Refusal:
    allow = ", ".join(dict.fromkeys((*methods, "OPTIONS")))
    if method == "OPTIONS":
        return Options(endpoint, allow)
    fields = ((b"Allow", allow.encode()),)
    fault = Fault(Code.METHOD_NOT_ALLOWED, f"This endpoint answers {allow}.", fields=fields)
    return Refusal(endpoint, fault)


def _choose(
    endpoint: Endpoint, head: Head, captures: Mapping[str, str]
) -> tuple[Leg, str | None] | Fault:
    selector = endpoint.selector
    if selector is None:
        return endpoint.legs[None], None
    selected = selector.select(
        [(reader, reader.read(head, captures)) for reader in selector.readers]
    )
    if (
        isinstance(selected, Selected)
        and selected.reader is None
        and any(
            isinstance(reader, AcceptReader) and reader.refuses(head, selected.version)
            for reader in selector.readers
        )
    ):
        # A default is for who says nothing, not for who says no.
        selected = replace(selector, default=None).select(())
    if isinstance(selected, Selected):
        by = selected.reader.mechanism if selected.reader is not None else "default"
        return endpoint.legs[selected.version], by
    if head.method == "OPTIONS" and selected.code is Code.VERSION_MISSING:
        # A CORS preflight cannot carry the header that it asks leave for (Fetch, section 4.8), and
        # what a resource allows is not a representation: the newest version answers.
        return endpoint.legs[max(selector.supported.values())], "newest"
    return selected
