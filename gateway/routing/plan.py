"""The plan: the decision about one request, made before the request is forwarded.

`plan` is a pure function. Live requests, the `explain` command and the tests all call it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from multidict import CIMultiDict

from gateway.access.access import AccessRule
from gateway.base.errors import (
    Fault,
    FaultCode,
    method_not_allowed,
    operation_missing,
    unconvertible,
)
from gateway.base.headers import BOUNDED_METHODS, FieldLines, is_final_recipient
from gateway.base.path_templates import Template
from gateway.base.request import ANONYMOUS_CONTEXT, RequestContext, RequestHead
from gateway.conversion.additional import (
    Additional,
    DocumentedVersion,
    LoadedDocument,
    OperationShapes,
)
from gateway.conversion.chain import Conversion, Documented
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.message import Message, request_message
from gateway.conversion.operation import Captures, WriteRule
from gateway.conversion.operation_path import FindDocumented, OperationPath, find_operation_path
from gateway.conversion.parameter_change import QUERY, parse_query, write_query
from gateway.lifecycle.lifecycle import EndpointLifecycle, Successor
from gateway.rollout.cutover import CutoverRoute
from gateway.routing.cors import PREFLIGHT, is_preflight
from gateway.routing.options import version_for_options
from gateway.routing.snapshot import (
    Endpoint,
    LinkDirectory,
    Route,
    ShadowAlternative,
    Snapshot,
)
from gateway.versions.reader import Reader, VersionRewrite
from gateway.versions.selection import NEWEST, UNNAMED, Selected
from gateway.versions.version import Version


class Plan(NamedTuple):
    """The decision to forward a request to the service of a route.

    Attributes:
        chosen_by: The mechanism or rule that chose the version; None if the API has no versions.
        target: The raw path and query of the request to the service.
        shadow: The plan for repeating the request in the background, or the refusal that the
            repeated request would get; None if the request is not repeated. For a write that is
            merged, MergedWrite contains it. One field has both, so that the pipeline makes one
            check for other requests.
        operation_path: The operation of the request in each version between the client's and the
            service's version; None if these versions have the same operations.
        content_type: The Content-Type of a JSON response; None keeps the service's Content-Type.
    """

    endpoint: Endpoint
    route: Route
    chosen_by: str | None
    target: str
    fields: FieldLines = ()
    cutover_route: CutoverRoute | None = None
    shadow: "Plan | Refusal | MergedWrite | None" = None
    operation_path: OperationPath | None = None
    content_type: str | None = None
    rewrite: VersionRewrite | None = None

    @property
    def request(self) -> Conversion | None:
        return self.route.request if self.operation_path is None else self.operation_path.request

    @property
    def response(self) -> Conversion | None:
        return self.route.response if self.operation_path is None else self.operation_path.response

    @property
    def repeated(self) -> "Plan | Refusal | None":
        """The plan for repeating the request, also for a write that is merged."""
        return self.shadow.shadow if isinstance(self.shadow, MergedWrite) else self.shadow

    def method(self, asked: str) -> str:
        return asked if self.operation_path is None else self.operation_path.method

    @property
    def version(self) -> Version | None:
        return self.route.version


class Options(NamedTuple):
    """The decision that the gateway itself responds to OPTIONS (RFC 9110, section 9.3.7).

    Attributes:
        allow: The value of the Allow header field; empty if the gateway has no list of methods.
    """

    endpoint: Endpoint
    allow: str
    version: Version | None = None
    fields: FieldLines = ()


class Refusal(NamedTuple):
    """The decision to refuse a request with an error.

    Attributes:
        cutover_route: The side of a cutover for which the request cannot be converted. None without
            a cutover, or if the request is refused for another reason.
    """

    endpoint: Endpoint | None
    fault: Fault
    version: Version | None = None
    fields: FieldLines = ()
    cutover_route: CutoverRoute | None = None


class MergedWrite(NamedTuple):
    """The settings for merging a write into the document of the service.

    Attributes:
        read: The raw path and query of the GET request that reads the document.
        response: The conversion of its response.
        shadow: See `Plan`.
    """

    rule: WriteRule
    read: str
    response: Conversion | None
    shadow: Plan | Refusal | None


Decision = Plan | Options | Refusal
_NOT_FOUND = Fault(FaultCode.NOT_FOUND, "No endpoint has this path.")


def plan(
    snapshot: Snapshot, head: RequestHead, context: RequestContext = ANONYMOUS_CONTEXT
) -> Decision:
    """Decide about a request by its path, version and method, and by the version's lifecycle.

    If the version is in the path, the path of an unsupported version does not exist. So the request
    is refused with 404 before its method is checked. The path of a retired version still exists,
    and requests to it are refused with 410.
    """
    found = snapshot.router.find(head.path)
    if found is None or (found[0].cors is not None and is_preflight(head.method, head.fields)):
        return Options(found[0], "") if found else Refusal(None, _NOT_FOUND)
    endpoint, captures = found
    chosen = _choose(endpoint, head, captures, context)
    last = head.method in BOUNDED_METHODS and is_final_recipient(head.fields)
    allowed = not last and (
        endpoint.methods is None
        or head.method in endpoint.methods
        or _passes_preflight(snapshot, endpoint.methods, head)
    )
    if isinstance(chosen, Fault):
        if allowed or chosen.status == 404:
            return Refusal(endpoint, chosen)
        return _other_method(endpoint, head.method, None, ())
    version, chosen_by, literal = chosen
    route = endpoint.routes.get(version)
    fields = () if route is None else route.constant_fields
    lifecycle = endpoint.retired[version] if route is None else route.lifecycle
    if lifecycle is not None and (route is None or not lifecycle.is_constant):
        captures = _successor_paths(snapshot.links, endpoint, lifecycle, head, captures)
        fields += lifecycle.fields_for(context.client, captures)
    access = None if route is None else route.access
    fault = None
    if access is not None:
        fault = _unauthorised(access, lifecycle, head, context)
        head = access.without_credential(head)
    if fault is None and context.admit and not is_preflight(head.method, head.fields):
        fault, limited = context.admit(endpoint.api, version)
        fields += limited
    if not allowed and fault is None:
        return _other_method(endpoint, head.method, version, fields)
    if fault is None and (route is None or context.now >= route.refuses_from):
        fault = _withdrawn(endpoint, route, lifecycle, head, captures, context)
    if fault is not None:
        return Refusal(endpoint, fault, version, fields)
    assert route is not None  # a version without a route has ended and was refused above
    return _served(endpoint, route, chosen_by, literal, fields, head, captures, context)


def _served(
    endpoint: Endpoint,
    route: Route,
    chosen_by: str | None,
    literal: bool,
    fields: FieldLines,
    head: RequestHead,
    captures: Mapping[str, str],
    context: RequestContext,
) -> Plan | Refusal:
    """Return the plan of a request that its route may serve.

    Args:
        literal: Whether the request contains the exact label of its version.
        fields: Header fields that are added to every response.
    """
    taken = None
    if route.cutover is not None:
        taken = route.cutover.rule.route_for(context)
        if taken is CutoverRoute.NEW:
            route = route.cutover.route
    request, operation_path, merge = route.request, None, None
    if request is None or not (request.by_request or route.documents):
        if literal:
            rewrite = None if request is None else route.request_rewrite
        else:
            rewrite = _rewrite(route, chosen_by)
        target = _target(endpoint, route, rewrite, head, captures)
    else:
        if request.merges:
            merge = partial(_merged, head=head, captures=captures, declared=route)
        route, target, operation_path = _by_operation(endpoint, route, head, captures, chosen_by)
        rewrite = _rewrite(route, chosen_by)
    if isinstance(target, Fault):
        return Refusal(endpoint, target, route.version, fields, taken)
    other = route.shadow
    shadow = (
        None
        if other is None or context.shadow_draw * 100 >= other.rule.percent
        else _beside(endpoint, other, chosen_by, fields, head, captures)
    )
    # `content_type` is None at most endpoints: their media types do not name a version.
    called = route.content_type and _media_type(endpoint, route, chosen_by, head)
    planned = Plan(
        endpoint,
        route,
        chosen_by,
        target,
        fields,
        taken,
        shadow,
        operation_path,
        called,
        rewrite,
    )
    return planned if merge is None else merge(planned)


def _passes_preflight(snapshot: Snapshot, methods: tuple[str, ...], head: RequestHead) -> bool:
    if not is_preflight(head.method, head.fields):
        return False
    if snapshot.cors is not None and snapshot.cors.preflight(head.fields):
        return False
    return head.fields.getall(PREFLIGHT, ())[0] in methods


def _unauthorised(
    access: AccessRule,
    lifecycle: EndpointLifecycle | None,
    head: RequestHead,
    context: RequestContext,
) -> Fault | None:
    """Return the fault if the client may not send the request, else None.

    A preflight has no credentials (Fetch, section 4.8). For a version that has ended for all
    clients, clients get the fault about its end instead.
    """
    if is_preflight(head.method, head.fields):
        return None
    if lifecycle is not None and not lifecycle.exempt and lifecycle.ended(context):
        return None
    return access.refusal(context.identity)


def _may_be_served(route: Route | None, head: RequestHead, context: RequestContext) -> bool:
    """Return whether the request is a preflight and the version may serve the request after it.

    A preflight has no credentials (Fetch, section 4.8), so it cannot identify an exempt client. The
    request after it gets its own random draw for the brownout.
    """
    if route is None or not is_preflight(head.method, head.fields):
        return False
    lifecycle, brownout = route.lifecycle, route.brownout
    clients = {
        context.client,
        *(() if lifecycle is None else lifecycle.exempt),
        *(() if brownout is None else brownout.exempt),
    }
    askers = (context._replace(client=client, brownout_draw=1.0) for client in clients)
    return any(
        (lifecycle is None or not lifecycle.ended(asker))
        and (brownout is None or brownout.retry_at(asker) is None)
        for asker in askers
    )


def _withdrawn(
    endpoint: Endpoint,
    route: Route | None,
    lifecycle: EndpointLifecycle | None,
    head: RequestHead,
    captures: Mapping[str, str],
    context: RequestContext,
) -> Fault | None:
    if _may_be_served(route, head, context):
        return None
    if lifecycle is not None and (route is None or lifecycle.ended(context)):
        return lifecycle.refusal(context, captures, _offered(endpoint, context))
    brownout = None if route is None else route.brownout
    retry_at = None if brownout is None else brownout.retry_at(context)
    if brownout is None or retry_at is None:
        return None
    successor = None if lifecycle is None else lifecycle.available_successor(context, captures)
    return brownout.refusal(retry_at, context.now, _offered(endpoint, context), successor)


def _beside(
    endpoint: Endpoint,
    beside: ShadowAlternative,
    chosen_by: str | None,
    fields: FieldLines,
    head: RequestHead,
    captures: Mapping[str, str],
) -> Plan | Refusal | None:
    rule, path = beside.rule, endpoint.template.text
    route, target, operation_path = _by_operation(endpoint, beside.route, head, captures, chosen_by)
    # An operation may be a read in one version and a write in the other, so the method in the other
    # version determines the mode.
    mode = rule.mode(head.method if operation_path is None else operation_path.method, path)
    if mode is None or (mode == "validate" and route.service is not beside.route.service):
        return None  # another service serves this operation, so the document does not describe it
    if isinstance(target, Fault):
        if target.code is FaultCode.DOCUMENT_UNAVAILABLE:
            return None  # this is no difference between the versions
        return Refusal(endpoint, target, beside.route.version, fields)
    writes = _write_rule(route if operation_path is None else operation_path, head.method)
    if mode != "validate" and writes is not None:
        return None  # unlike the write itself, its repetition would overwrite unseen data
    if mode == "dry_run" and rule.dry_run is not None:
        target = rule.dry_run.target(target)
    called = _media_type(endpoint, route, chosen_by, head)
    rewrite = _rewrite(route, chosen_by)
    return Plan(
        endpoint, route, chosen_by, target, fields, None, None, operation_path, called, rewrite
    )


# A GET that reads a document has no body, and its links must not depend on that of the write.
_OF_BODY = ("Content-Type", "Content-Encoding")


def _write_rule(converts: Plan | Route | OperationPath, method: str) -> WriteRule | None:
    request = converts.request
    return None if request is None else request.write_rule(method)


def _merged(
    planned: Plan, head: RequestHead, captures: Captures, declared: Route
) -> Plan | Refusal:
    """Return the plan of a write that is merged, or the same plan for other requests.

    Args:
        declared: The route from which the operation of the request selects another one.
    """
    rule = _write_rule(planned, head.method)
    if rule is None:
        return planned
    endpoint, route, response = planned.endpoint, planned.route, planned.response
    unloaded = None if route.written is None else _unloaded((route.written,))
    if unloaded is not None:
        return Refusal(endpoint, unloaded, route.version, planned.fields)
    path = planned.target.partition("?")[0]
    if rule.read is not None and route.service_version is not None:
        own = planned.operation_path
        for step in () if own is None else own.query_steps:
            captures = {**captures, **step.captures}
        try:
            path = rule.read.path(captures, route.service_version)
        except ConversionError as error:
            fault = unconvertible(error, error.misfit)
            return Refusal(endpoint, fault, route.version, planned.fields)
    else:
        fields = CIMultiDict((name, value) for name, value in head.fields.items())
        for name in _OF_BODY:
            fields.popall(name, None)
        asked = head._replace(method="GET", query=None, fields=fields)
        found, target, other = _by_operation(endpoint, declared, asked, captures, planned.chosen_by)
        same = isinstance(target, str) and target.partition("?")[0] == path
        # Responses to any other GET are converted like those of the write.
        if same and found.service is route.service:
            response = found.response if other is None else other.response
    read = written_target(planned.rewrite, path, None)
    return planned._replace(shadow=MergedWrite(rule, read, response, planned.repeated))


def _media_type(
    endpoint: Endpoint, route: Route, chosen_by: str | None, head: RequestHead
) -> str | None:
    """Return the media type that names the version, if the request accepts it.

    The result is None if the request does not name its version, because the version is a default or
    the client is pinned to it.
    """
    selector, version = endpoint.selector, route.version
    if route.content_type is None or version is None or chosen_by in UNNAMED:
        return None
    assert selector is not None  # an endpoint with versions has a selector
    aliases = selector.matching.aliases
    only = selector.only
    # With a single media type and no aliases, the request has named the version itself.
    if only is not None and only.has_one_type and not aliases:
        return route.content_type
    found = (reader.response_media_type(head, version, aliases) for reader in selector.readers)
    return next(filter(None, found), None)


def _offered(endpoint: Endpoint, context: RequestContext) -> tuple[str, ...]:
    assert endpoint.selector is not None  # an endpoint with versions has a selector
    return endpoint.selector.offered(context)


def _rewrite(route: Route, chosen_by: str | None) -> VersionRewrite | None:
    return route.unnamed_rewrite if chosen_by in UNNAMED else route.request_rewrite


def _target(
    endpoint: Endpoint,
    route: Route,
    rewrite: VersionRewrite | None,
    head: RequestHead,
    captures: Mapping[str, str],
) -> str | Fault:
    query, request = head.query, route.request
    if route.documents is not None:
        fault = _undocumented(endpoint, route, head.method, captures)
        if fault is not None:
            return fault
    if request is not None and request.changes_query:
        try:
            asked = _asked(endpoint, head, captures) if request.shows_message else None
            query = request.query(head.method, query, asked)
        except ConversionError as error:
            return unconvertible(error, error.misfit)
    return written_target(rewrite, _path(route, route.service_version, head, captures), query)


# Most documents are compiled within 2 s after the start.
_SOON: Final = ((b"Retry-After", b"2"),)


def _unloaded(documents: Iterable[DocumentedVersion]) -> Fault | None:
    """Return the fault of a request whose hidden or readOnly fields are not known yet."""
    for one in documents:
        if one.is_missing:
            detail = f"The OpenAPI document of version {one.version} is not loaded yet."
            return Fault(FaultCode.DOCUMENT_UNAVAILABLE, detail, fields=_SOON)
    return None


def _by_operation(
    endpoint: Endpoint,
    route: Route,
    head: RequestHead,
    captures: Mapping[str, str],
    chosen_by: str | None,
) -> tuple[Route, str | Fault, OperationPath | None]:
    unloaded = _unloaded((route.documents or {}).values())
    if unloaded is not None:
        return route, unloaded, None
    if route.for_media_types is not None:
        route = route.for_media_types(head.fields)
    request, response = route.request, route.response
    if request is None or response is None or not request.has_operations:
        rewrite = _rewrite(route, chosen_by)
        if route.documents is not None:
            route = _documented(endpoint, route, head.method, captures)
        return route, _target(endpoint, route, rewrite, head, captures), None

    def path(version: Version) -> str:
        return _path(route, version, head, captures)

    find = None
    if route.documents is not None:
        template = route.upstream_path or endpoint.template
        find = partial(find_documented, template, captures, route.documents)
    try:
        asked = _asked(endpoint, head, captures) if request.shows_message else None
        preflight = head.fields.getall(PREFLIGHT, ()) if head.method == "OPTIONS" else ()
        meant = next(iter(preflight), None)
        operation_path = find_operation_path(
            request, response, head.method, path, head.query, asked, meant, find
        )
    except ConversionError as error:
        return route, unconvertible(error, error.misfit), None
    if find is not None and operation_path.operations[:1] == (None,):
        fault = _undocumented(endpoint, route, head.method, captures)
        if fault is not None:
            return route, fault, None
    substitute = operation_path.substitute
    if substitute is not None:
        if substitute.service is None:
            fault = operation_missing(
                substitute.status,
                substitute.usual,
                substitute.detail,
                substitute.code,
                endpoint.allowed(substitute.methods),
            )
            return route, fault, None
        route = route.substitutes[substitute.service.name, operation_path.version]
    rewrite = _rewrite(route, chosen_by)
    return route, written_target(rewrite, operation_path.path, operation_path.query), operation_path


def find_documented(
    template: Template,
    captures: Mapping[str, str],
    documents: Mapping[Version, DocumentedVersion],
    version: Version,
    method: str,
    path: str | None = None,
) -> tuple[LoadedDocument, OperationShapes] | None:
    """Return the document of a version with the operation of a request; None if it has none.

    Args:
        template: The path of requests to services.
        path: The path of the request in that version, if its operation has a separate path.
    """
    known = documents.get(version)
    document = None if known is None else known.loaded
    if document is None:
        return None
    found = document.find(method, path or template.fill({**captures, "version": str(version)}))
    return None if found is None else (document, found)


def documented_operations(
    find: FindDocumented, versions: Iterable[Version], method: str
) -> Documented:
    each = ((version, find(version, method, None)) for version in versions)
    return {version: one for version, one in each if one is not None}


def _documented(
    endpoint: Endpoint, route: Route, method: str, captures: Mapping[str, str]
) -> Route:
    """Return the route with filters for what the documents of older versions lack."""
    assert route.documents is not None  # the caller has checked it
    request, response, known = route.request, route.response, route.documents
    template = route.upstream_path or endpoint.template
    find = partial(find_documented, template, captures, known)
    found = documented_operations(find, known, method)
    if not found or request is None or response is None:
        return route
    key = tuple(operation for _, operation in found.values())
    made = route.by_operation.get(key)
    if made is None:
        made = replace(route, request=request.filtered(found), response=response.filtered(found))
        route.by_operation[key] = made
    return made


def _undocumented(
    endpoint: Endpoint, route: Route, method: str, captures: Mapping[str, str]
) -> Fault | None:
    """Return the fault for an operation that the document of the client's version lacks."""
    first = None if route.request is None else next(iter(route.request.version_steps), None)
    known = None if first is None else (route.documents or {}).get(first.source)
    document = None if known is None else known.loaded
    if first is None or document is None or method == "OPTIONS":
        return None
    policy = first.additional(method, None)
    if policy is None or policy.requests is not Additional.REFUSE:
        return None
    path = (route.upstream_path or endpoint.template).fill(
        {**captures, "version": str(first.source)}
    )
    methods = document.methods(path)
    if method in methods:
        return None
    if methods:
        return method_not_allowed(", ".join(endpoint.allowed(methods)))
    return operation_missing(404, f"Version {first.source} has no such operation.")


def _asked(endpoint: Endpoint, head: RequestHead, captures: Mapping[str, str]) -> Message:
    asked = head.method, head.path, head.query, head.fields.items()
    return request_message(*asked, endpoint.template.text, captures)


def _path(
    route: Route, version: Version | None, head: RequestHead, captures: Mapping[str, str]
) -> str:
    template = route.upstream_path
    if template is None:
        return head.path
    if template.captures:
        return template.fill({**captures, "version": str(version)})
    return template.text


def written_target(rewrite: VersionRewrite | None, path: str, query: str | None) -> str:
    # The version is written last, as in `proxy.message_rewriting`: a conversion may rename a
    # parameter to the name of the version parameter.
    if rewrite is not None and rewrite.changes_query:
        query = rewrite.query(query)
    return path if query is None else f"{path}?{query}"


def _other_method(
    endpoint: Endpoint, method: str, version: Version | None, fields: FieldLines
) -> Options | Refusal:
    allow = ", ".join(endpoint.allowed(one for one in endpoint.methods or () if one != method))
    if method == "OPTIONS":
        return Options(endpoint, allow, version, fields)
    return Refusal(endpoint, method_not_allowed(allow or "OPTIONS"), version, fields)


def _choose(
    endpoint: Endpoint, head: RequestHead, captures: Mapping[str, str], context: RequestContext
) -> tuple[Version | None, str | None, bool] | Fault:
    """Return the version, how it was chosen, and whether the request contains its exact label."""
    selector = endpoint.selector
    if selector is None:
        return None, None, True
    if selector.confusable:  # usually empty: this check is cheaper than a loop without iterations
        for confusable in selector.confusable:
            lookalike = confusable.lookalike(head)
            if lookalike is not None:
                return selector.ambiguous(confusable, lookalike, context)
    reader = selector.only
    if reader is not None:
        # The fast path for nearly every request: one reader finds one supported version.
        values = reader.read(head, captures)
        version = selector.supported.get(values[0]) if len(values) == 1 else None
        if version is not None:
            return version, reader.mechanism, True
    readings = [(each, each.read(head, captures)) for each in selector.readers]
    selected = selector.select(readings, context)
    if (
        isinstance(selected, Selected)
        and not selected.named
        and any(each.refuses(head, selected.version) for each in selector.readers)
    ):
        # A request may exclude versions, for example in Accept. A request must not get a default or
        # pinned version that it excludes.
        selected = selector.missing(context)
    chosen = None
    if isinstance(selected, Selected):
        chosen = selected.version, selected.chosen_by
        if head.method != "OPTIONS" or selected.chosen_by not in UNNAMED:
            return *chosen, selected.named and _is_literal(readings, str(selected.version))
    elif head.method != "OPTIONS" or selected.code is not FaultCode.VERSION_MISSING:
        return selected
    path = partial(_path, head=head, captures=captures)
    asked = partial(_by_operation, endpoint, captures=captures, chosen_by=NEWEST)
    found = version_for_options(endpoint.routes, selector, chosen, head, context, path, asked)
    return *found, False


def _is_literal(readings: Sequence[tuple[Reader, tuple[str, ...]]], label: str) -> bool:
    """Return whether every version in the request is written as exactly this label.

    In a list of preferred versions, the label must be the first.
    """
    return all(
        values[0] == label and (reader.is_preference or len({*values}) == 1)
        for reader, values in readings
        if values
    )


def _successor_paths(
    directory: LinkDirectory,
    endpoint: Endpoint,
    lifecycle: EndpointLifecycle,
    head: RequestHead,
    captures: Mapping[str, str],
) -> Mapping[str, str]:
    """Return the values for links to successors: captures, port, and paths of the operation.

    There is a path for each later version whose operations differ. Query parameters that the later
    version cannot have are ignored. If the later version lacks the operation, or no endpoint leads
    to the operation, the path of the same endpoint is used.
    """
    values = lifecycle.link_values(captures, head)
    if not lifecycle.operations_differ:
        return values
    found = dict(values)
    for one in lifecycle.successors:
        if one.conversions is not None:
            path = _successor_path(directory, endpoint, one, head, captures)
            if path is None:
                path = endpoint.template.fill({**captures, "version": str(one.version)})
            found[one.operation_key] = one.with_query(path)
    return found


def _successor_path(
    directory: LinkDirectory,
    endpoint: Endpoint,
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
    # Only the parameters that the conversion adds are kept, as in all links to a later version.
    query = write_query([*operation_path.query_steps[-1].added])
    return public if query is None else f"{public}?{query}"


def _without(query: str | None, place: ErrorPlace) -> str | None:
    names = place.names if isinstance(place, Beside) and place.what == QUERY.what else ()
    return write_query([line for line in parse_query(query) if line.key not in names])
