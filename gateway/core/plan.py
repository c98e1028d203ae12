"""The plan: the decision about one request, made before the gateway acts on it.

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
    """The decision to forward a request to the service of a route.

    Attributes:
        endpoint: The endpoint of the request.
        route: The route by which the version is served.
        chosen_by: The mechanism or rule that chose the version; None where the API has no
            versions.
        target: The raw path and query of the request to the service.
        fields: The header fields of every response, from the service or from the gateway.
        cutover_route: The side of a cutover that the request takes; None where there is no cutover.
        shadow: The plan for the repetition of the request in the background; None repeats nothing.
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
        """The Content-Type of a JSON response; None keeps the Content-Type of the service.

        It is None for a version that the request does not name, a default or a client's pin: such
        a request did not ask for the media type of the version.
        """
        return None if self.chosen_by in _UNNAMED else self.route.content_type


class Options(NamedTuple):
    """The decision to answer an OPTIONS request in the gateway (RFC 9110, section 9.3.7).

    Attributes:
        endpoint: The endpoint of the request.
        allow: The value of the Allow header field.
        version: The version of the request; None where none was chosen.
        fields: The header fields of every response of that version.
    """

    endpoint: Endpoint
    allow: str
    version: Version | None = None
    fields: FieldLines = ()


class Refusal(NamedTuple):
    """The decision to refuse a request with a fault.

    Attributes:
        endpoint: The endpoint of the request; None where the path matches no endpoint.
        fault: The fault that the response describes.
        version: The version of the request; None where none was chosen.
        fields: The header fields of every response of that version.
    """

    endpoint: Endpoint | None
    fault: Fault
    version: Version | None = None
    fields: FieldLines = ()


Decision = Plan | Options | Refusal


def plan(
    snapshot: Snapshot, head: RequestHead, context: RequestContext = ANONYMOUS_CONTEXT
) -> Decision:
    """Return the decision about a request, from its path, version and method and the lifecycle.

    Where the path carries the version, the path of an unsupported version does not exist, so the
    request is refused (404) before its method is checked. The path of a retired version still
    exists, and its requests are refused as retired (410).
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
    """Return the route and the target of a shadow request, or None if there is none to send."""
    if not beside.rule.falls_on(head.method, context):
        return None
    target = _target(beside.route, head, captures)
    # A request that cannot be converted has no counterpart in the shadow's version.
    return None if isinstance(target, Fault) else (beside.route, target)


def _offered(endpoint: Endpoint, context: RequestContext) -> tuple[str, ...]:
    assert endpoint.selector is not None  # an endpoint with versions has a selector
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
    # This step is the last, as in `gateway.proxy.transit`, because a conversion may rename a
    # parameter to the name of the version parameter.
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
        # The fast path of nearly every request: one reader finds one supported version.
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
        # A default or pinned version serves requests that name no version. It does not serve a
        # request that excludes it, as an Accept header field can.
        selected = selector.missing(context)
    if isinstance(selected, Selected):
        return selected.version, selected.chosen_by
    if head.method == "OPTIONS" and selected.code is FaultCode.VERSION_MISSING:
        # A CORS preflight cannot carry the header field that it requests permission for (Fetch,
        # section 4.8), and the allowed methods are no representation of a version, so the response
        # is that of the newest version.
        offered = selector.offered(context) or selector.supported
        return max(selector.supported[label] for label in offered), ChosenBy.NEWEST
    return selected
