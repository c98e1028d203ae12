"""The plan: what will be done with one request, decided before anything is done.

`plan` is pure: the live path, the `explain` command and the tests call this one function.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gateway.core.context import ANONYMOUS_CONTEXT, RequestContext
from gateway.core.conversion.document import ConversionError
from gateway.core.cutover.cutover import CutoverRoute
from gateway.core.cutover.shadow import Shadow
from gateway.core.errors import Fault, FaultCode
from gateway.core.headers import FieldLines
from gateway.core.lifecycle.lifecycle import places
from gateway.core.request import RequestHead
from gateway.core.snapshot import Alternative, Endpoint, Route, Snapshot
from gateway.core.versions.chosen_by import ChosenBy
from gateway.core.versions.selection import Selected
from gateway.core.versions.version import Version

_UNNAMED = frozenset({ChosenBy.DEFAULT, ChosenBy.PIN})


class Plan(NamedTuple):
    """Ask the service of a route.

    Attributes:
        endpoint: where the request came in.
        route: how the version is served.
        chosen_by: what chose the version; None where the API has no versions.
        target: the path and query to ask the service for, raw.
        fields: header fields that every answer carries, whoever gives it.
        cutover_route: which route of a cutover is taken; None where there is none.
        shadow: what to do with the request as well, in the background.
    """

    endpoint: Endpoint
    route: Route
    chosen_by: ChosenBy | None
    target: str
    fields: FieldLines = ()
    cutover_route: CutoverRoute | None = None
    shadow: "Plan | None" = None

    @property
    def version(self) -> Version | None:
        """The version that the client gets; None where the API has no versions."""
        return self.route.version

    @property
    def content_type(self) -> str | None:
        """What a JSON answer is called; None keeps the service's word.

        Nobody asked for the media type of a version that is a default, or what a client has pinned.
        """
        return None if self.chosen_by in _UNNAMED else self.route.content_type


class Options(NamedTuple):
    """Answer an OPTIONS request here and now (RFC 9110, section 9.3.7).

    `version` and `fields` are as those of a Refusal.
    """

    endpoint: Endpoint
    allow: str
    version: Version | None = None
    fields: FieldLines = ()


class Refusal(NamedTuple):
    """Answer with a fault.

    Attributes:
        endpoint: where the request came in; None where the path names no endpoint.
        fault: what the client is told.
        version: the version that was asked for; None where none was chosen.
        fields: header fields that every answer of that version carries.
    """

    endpoint: Endpoint | None
    fault: Fault
    version: Version | None = None
    fields: FieldLines = ()


Decision = Plan | Options | Refusal


def plan(
    snapshot: Snapshot, head: RequestHead, context: RequestContext = ANONYMOUS_CONTEXT
) -> Decision:
    """Return what to do with a request: routing, the version, the method, what became of it.

    Where the path carries the version, one that is not on offer is a path that does not exist, so
    it is refused before the method is looked at. One that is over is there, to say so.
    """
    found = snapshot.router.find(head.path)
    if found is None:
        return Refusal(None, Fault(FaultCode.NOT_FOUND, "No endpoint has this path."))
    endpoint, captures = found
    chosen = _choose(endpoint, head, captures, context)
    allowed = endpoint.methods is None or head.method in endpoint.methods
    if isinstance(chosen, Fault):
        if allowed or chosen.status == 404:
            return Refusal(endpoint, chosen)
        return _other_method(endpoint, head.method, None, ())
    version, chosen_by = chosen
    route = endpoint.routes.get(version)
    fields = () if route is None else route.fields
    lifecycle = endpoint.retired[version] if route is None else route.lifecycle
    if lifecycle is not None:
        captures = places(captures, head)
        fields += lifecycle.told(context.client, captures)
    if not allowed:
        return _other_method(endpoint, head.method, version, fields)
    if lifecycle is not None and (route is None or lifecycle.terms.ended(context)):
        fault = lifecycle.retired(context, captures, _offered(endpoint, context))
        return Refusal(endpoint, fault, version, fields)
    assert route is not None
    if route.brownout is not None and (closes := route.brownout.closes(context)) is not None:
        instead = None if lifecycle is None else lifecycle.instead(context, captures)
        fault = route.brownout.refusal(closes, context.now, _offered(endpoint, context), instead)
        return Refusal(endpoint, fault, version, fields)
    taken = None
    if route.cutover is not None:
        taken = route.cutover.rule.route_for(context)
        if taken is CutoverRoute.NEW:
            route = route.cutover.route
    target = _target(route, head, captures)
    if isinstance(target, Fault):
        return Refusal(endpoint, target, version, fields)
    beside = None if route.shadow is None else _beside(route.shadow, head, captures, context)
    shadow = beside and Plan(endpoint, beside[0], chosen_by, beside[1], fields)
    return Plan(endpoint, route, chosen_by, target, fields, taken, shadow)


def _beside(
    beside: Alternative[Shadow],
    head: RequestHead,
    captures: Mapping[str, str],
    context: RequestContext,
) -> tuple[Route, str] | None:
    """Return what is asked in the background, and for which path and query."""
    if not beside.rule.falls_on(head.method, context):
        return None
    target = _target(beside.route, head, captures)
    # Where that is a fault, what is asked has no counterpart there.
    return None if isinstance(target, Fault) else (beside.route, target)


def _offered(endpoint: Endpoint, context: RequestContext) -> tuple[str, ...]:
    assert endpoint.selector is not None  # as there are versions
    return endpoint.selector.offered(context)


def _target(route: Route, head: RequestHead, captures: Mapping[str, str]) -> str | Fault:
    template = route.upstream_path
    if template is None:
        path = head.path
    elif template.captures:
        path = template.fill({**captures, "version": str(route.service_version)})
    else:
        path = template.text
    query = head.query
    if route.request is not None:
        try:
            query = route.request.query(head.method, query)
        except ConversionError as error:
            detail = f"The request does not fit this version: {error.reason}."
            return Fault(FaultCode.UNCONVERTIBLE_REQUEST, detail)
    # Last, as in `gateway.proxy.transit`: a parameter may be given the version's own name.
    if route.request_rewrite is not None:
        query = route.request_rewrite.query(query)
    return path if query is None else f"{path}?{query}"


def _other_method(
    endpoint: Endpoint, method: str, version: Version | None, fields: FieldLines
) -> Options | Refusal:
    allow = ", ".join(dict.fromkeys((*(endpoint.methods or ()), "OPTIONS")))
    if method == "OPTIONS":
        return Options(endpoint, allow, version, fields)
    fault = Fault(
        FaultCode.METHOD_NOT_ALLOWED,
        f"This endpoint answers {allow}.",
        fields=((b"Allow", allow.encode()),),
    )
    return Refusal(endpoint, fault, version, fields)


def _choose(
    endpoint: Endpoint, head: RequestHead, captures: Mapping[str, str], context: RequestContext
) -> tuple[Version | None, ChosenBy | None] | Fault:
    selector = endpoint.selector
    if selector is None:
        return None, None
    if len(selector.readers) == 1:
        # What nearly every request is: one place speaks, and names what is on offer.
        (reader,) = selector.readers
        values = reader.read(head, captures)
        version = selector.supported.get(values[0]) if len(values) == 1 else None
        if version is not None:
            return version, reader.mechanism
    readings = [(reader, reader.read(head, captures)) for reader in selector.readers]
    selected = selector.select(readings, context)
    if (
        isinstance(selected, Selected)
        and not selected.named
        and any(reader.refuses(head, selected.version) for reader in selector.readers)
    ):
        # What the request does not name is for who says nothing, not for who says no.
        selected = selector.missing(context)
    if isinstance(selected, Selected):
        return selected.version, selected.chosen_by
    if head.method == "OPTIONS" and selected.code is FaultCode.VERSION_MISSING:
        # A CORS preflight cannot carry the header that it asks leave for (Fetch, section 4.8), and
        # what a resource allows is not a representation: the newest version answers.
        offered = selector.offered(context) or selector.supported
        return max(selector.supported[label] for label in offered), ChosenBy.NEWEST
    return selected
