"""Explains how the gateway would handle a request; the plan is the same as for live requests."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from ipaddress import ip_address

from multidict import CIMultiDict

from gateway.admin.body_trace import ExplainedBody, explain_body
from gateway.base.addresses import client_site
from gateway.base.client_names import ANONYMOUS, ASSUMED, UNVERIFIED, Identity
from gateway.base.headers import FieldLines, HeaderFields
from gateway.base.overrides import NO_OVERRIDES, Overrides
from gateway.base.request import RequestContext, RequestHead
from gateway.conversion.chain import BodyConversion, Conversion
from gateway.conversion.unfit import UNFIT, UnfitValues
from gateway.conversion.version_step import Direction
from gateway.rollout.cutover import BUCKETS, bucket, percent_in_force
from gateway.routing.cors import is_preflight
from gateway.routing.plan import Decision, MergedWrite, Options, Plan, Refusal, plan
from gateway.routing.snapshot import Route, Snapshot
from gateway.versions.reader import Reader
from gateway.versions.selection import NEWEST

# The characters of methods and header field names (tokens; RFC 9110, section 5.6.2).
_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST = re.compile(rf"\s*({_TCHARS}) +(/[^\s#?]*)(?:\?([^\s#]*))?\s*\Z")
# This pattern does not match blanks around the name and the value. With several parts that match
# blanks, a malformed line would take cubic time. The caller strips the blanks.
_FIELD = re.compile(rf"({_TCHARS}):([^\x00-\x08\x0a-\x1f\x7f]*)\Z")


def parse_request(line: str, fields: Sequence[str], rules: Snapshot) -> RequestHead:
    """Parse `GET /path?query` and lines `Name: value`; raises ValueError that shows an example."""
    request = _REQUEST.match(line)
    if request is None:
        right = next((found for found, _ in _examples(rules)), "GET /path")
        raise ValueError(f"{line!r} is not a request; write it like '{right}'")
    headers = parse_fields(fields, rules)
    authority = headers.get("Host", "")
    return RequestHead(request[1].upper(), request[2], request[3], headers, authority)


def parse_fields(lines: Sequence[str], rules: Snapshot) -> CIMultiDict[str]:
    """Parse lines `Name: value`; raises ValueError that shows an example."""
    headers: CIMultiDict[str] = CIMultiDict()
    for text in lines:
        field = _FIELD.match(text.lstrip())
        if field is None:
            read = (header for _, headers in _examples(rules) for header in headers)
            right = next(read, "Accept: application/json")
            raise ValueError(f"{text!r} is not a header; write it like '{right}'")
        headers.add(field[1], field[2].strip(" \t"))
    return headers


def parse_address(text: str) -> str:
    """Return an IP address in its canonical form; raises ValueError that shows an example."""
    try:
        return text and str(ip_address(text))
    except ValueError:
        raise ValueError(f"'{text}' is not an address; write one like 192.0.2.7") from None


def example_request(rules: Snapshot) -> tuple[str, list[str]]:
    """Return the request line and header fields of a request that is served; empty without one."""
    return next(_examples(rules), ("", []))


def _examples(rules: Snapshot) -> Iterator[tuple[str, list[str]]]:
    for endpoint in rules.router:
        if not endpoint.routes:
            continue
        method = "GET" if "GET" in (endpoint.methods or ("GET",)) else (endpoint.methods or ())[0]
        version = next(iter(endpoint.routes))
        names = dict.fromkeys(endpoint.template.captures, "1")
        line = f"{method} {endpoint.template.fill({**names, 'version': str(version)})}"
        if version is None or endpoint.selector is None:
            yield line, []
            continue
        found = [reader.address(version) for reader in endpoint.selector.readers]
        queries = [each.query for each in found if each.query]
        headers = [each.header for each in found if each.header]
        hosts = [f"Host: {each.host}" for each in found if each.host]
        yield "?".join([line, *queries[:1]]), [*headers, *hosts]


def field_lines(headers: CIMultiDict[str]) -> HeaderFields:
    return [
        (name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers.items()
    ]


Fact = tuple[str, str]
"""One line of an explanation: its subject, such as `endpoint`, and the statement about it."""


def facts_text(snapshot: Snapshot, head: RequestHead, found: Iterable[Fact]) -> str:
    """Return the result of `facts` as text, with one fact per line."""
    query = head.query if snapshot.naming is None else snapshot.naming.redacted(head.query)
    target = head.path if query is None else f"{head.path}?{query}"
    lines = [f"{head.method} {target}", *(f"  {name:<9} {fact}" for name, fact in found)]
    return "\n".join(lines)


def facts(
    snapshot: Snapshot,
    head: RequestHead,
    now: float,
    peer: str = "",
    client: str | None = None,
    body: ExplainedBody | None = None,
    overrides: Overrides = NO_OVERRIDES,
) -> list[Fact]:
    """Explain how the gateway would handle a request, step by step.

    Args:
        now: the time of the request, in seconds since 1970.
        client: the client's name; None to derive the name from the request.
    """
    found: list[Fact] = []
    unfit = UnfitValues()
    UNFIT.set(unfit)
    identity = _identity(snapshot, head, peer, client)
    if snapshot.naming is not None:
        head = head._replace(query=snapshot.naming.redacted(head.query))
    context = RequestContext(identity.name, now, overrides, identity=identity)
    if context.client or snapshot.naming is not None:
        found.append(("client", context.client or "without a name"))
    if identity.rejection is not None:
        found.append(("client", f"the {identity.rejection}"))
    outcome = plan(snapshot, head, context)
    if outcome.endpoint is not None:
        found.append(("api", outcome.endpoint.api))
        found.append(("endpoint", outcome.endpoint.template.text))
        route = outcome.endpoint.routes.get(outcome.version)
        if route is not None and route.access is not None:
            found.append(("access", str(route.access)))
    readings = _readings(snapshot, head, outcome)
    found += [
        ("read", f"{', '.join(map(repr, values)) or 'nothing'} in {reader.place}")
        for reader, values in readings
    ]
    found += _limits(snapshot, outcome, head, identity, peer)
    match outcome:
        case Refusal(fault=fault):
            found.append(("answer", f"{fault.status} {fault.code}: {fault.detail}"))
            found += _says(fault.fields)
        case Options(allow=allow):
            shown = f", Allow: {allow}" if allow else ""
            found.append(("answer", f"204 from the gateway itself{shown}"))
        case Plan():
            found += _plan(outcome, head, readings)
            found += _brownout(outcome.endpoint.routes[outcome.version], context)
            found += _cutover(outcome, snapshot, context)
            found += _shadow(outcome, head.method)
            found += _unfit(unfit)
            found += [] if body is None else explain_body(outcome, snapshot, head, body)
    found += _unfit(unfit)
    found += _says(outcome.fields)
    vary = () if outcome.endpoint is None else outcome.endpoint.vary_of(outcome.version)
    if vary:
        found.append(("vary", ", ".join(vary)))
    return found


def _unfit(values: UnfitValues) -> list[Fact]:
    sample, values.sample = values.sample, ""
    return [("unfit", sample)] if sample else []


Readings = list[tuple[Reader, tuple[str, ...]]]


def _identity(snapshot: Snapshot, head: RequestHead, peer: str, client: str | None) -> Identity:
    """Return the client of a request; a client that is given by name counts as proven."""
    if snapshot.naming is None:
        return Identity(client or ANONYMOUS)
    if client is None:
        return snapshot.naming.identify(head, peer)
    name = snapshot.naming.known_as(client)
    return Identity(name, None if name.startswith(UNVERIFIED) else ASSUMED)


def _readings(snapshot: Snapshot, head: RequestHead, outcome: Decision) -> Readings:
    found = snapshot.router.find(head.path)
    # Readers do not run if the API has no versions, or if the method alone determines the response.
    decided = isinstance(outcome, Options) or (
        isinstance(outcome, Refusal) and outcome.fault.supported is None
    )
    if decided or found is None or found[0].selector is None:
        return []
    return [(reader, reader.read(head, found[1])) for reader in found[0].selector.readers]


def _plan(chosen: Plan, head: RequestHead, readings: Readings) -> list[tuple[str, str]]:
    route = chosen.route
    addresses = ", ".join(target.authority for target in route.service.targets)
    serves = (
        ""
        if route.service_version == route.version
        else f", which serves version {route.service_version}"
    )
    facts = [
        ("service", f"{route.service.name} at {addresses}{serves}"),
        *_operations(chosen),
        ("asks", f"{chosen.method(head.method)} {chosen.target}"),
        *_told(chosen, head),
        *_merge(chosen),
        *_bodies(chosen, head.method),
    ]
    if route.version is not None:
        facts.insert(0, ("version", f"{route.version}, {_why(chosen, readings)}"))
    if chosen.content_type is not None:
        facts.append(("type", f"{chosen.content_type}, if the response is JSON"))
    return facts


def _why(chosen: Plan, readings: Readings) -> str:
    if chosen.chosen_by is NEWEST:
        return "the newest matching version, since the OPTIONS request names none"
    named_there = [value for _, values in readings for value in values]
    named = not named_there or str(chosen.route.version) in named_there
    return f"by {chosen.chosen_by}" + ("" if named else ", as the newest matching version")


def _limits(
    snapshot: Snapshot, outcome: Decision, head: RequestHead, identity: Identity, peer: str
) -> list[Fact]:
    """Return the rate limits that apply to a request. No token is taken."""
    endpoint = outcome.endpoint
    if snapshot.rate_limits is None or endpoint is None or is_preflight(head.method, head.fields):
        return []
    address = partial(client_site, head, peer, snapshot.trusted_proxies)
    found: list[Fact] = []
    for limit in snapshot.rate_limits.get((endpoint.api, outcome.version), ()):
        if limit.applies(identity.name):
            whose = limit.key(endpoint.api, identity, address).strip() or "an unknown address"
            size = f"{limit.text}, at most {limit.bucket.tokens} at once"
            found.append(("limit", f"{limit.bucket.name}: {size}, by {limit.by}, here {whose}"))
    return found


def _says(fields: FieldLines) -> list[tuple[str, str]]:
    return [("says", f"{name.decode()}: {value.decode()}") for name, value in fields]


def _brownout(route: Route, context: RequestContext) -> list[tuple[str, str]]:
    if route.brownout is None:
        return []
    if route.brownout.key in context.overrides.paused:
        return [("brownout", "is paused")]
    if route.brownout.exempts(context):
        return [("brownout", "exempts this client")]
    share = route.brownout.share(context.now)
    if share:
        return [("brownout", f"refuses {100 * share:.3g}% of the requests now")]
    return [("brownout", "refuses nothing now")]


def _cutover(chosen: Plan, snapshot: Snapshot, context: RequestContext) -> list[tuple[str, str]]:
    facts = []
    if chosen.cutover_route is not None:
        cutover = snapshot.cutovers[chosen.endpoint.api, str(chosen.version)]
        percent = percent_in_force(cutover, context.overrides)
        whom = f"{percent:g}% of the clients go via version {cutover.via}"
        if cutover.sticky == "request":
            whom = f"{percent:g}% of the requests go via version {cutover.via}, by chance"
        elif context.client:
            number = bucket(cutover.key, context.client)
            whom += (
                f", buckets below {percent * BUCKETS / 100:g}; '{context.client}' is in {number}"
            )
        else:
            whom += ", and clients without a name go last"
        facts.append(("cutover", f"the {chosen.cutover_route} route: {whom}"))
    return facts


def _shadow(chosen: Plan, method: str) -> list[tuple[str, str]]:
    other = chosen.repeated
    if other is None or chosen.route.shadow is None:
        return []
    if isinstance(other, Refusal):
        return [("shadow", f"would be refused: {other.fault.detail}")]
    rule = chosen.route.shadow.rule
    asked = f"{other.route.service.name} for {other.target}"
    if other.operation_path is not None:
        asked = f"{other.route.service.name} for {other.operation_path.method} {other.target}"
    mode = rule.mode(other.method(method), chosen.endpoint.template.text)
    if mode == "validate":
        fact = f"are converted to requests to {asked} and validated, but not sent"
    else:
        dry = " as a dry run," if mode == "dry_run" else ""
        fact = f"are also sent, converted,{dry} to {asked} to compare responses"
    return [("shadow", f"{rule.percent:g}% {fact}")]


def _told(chosen: Plan, head: RequestHead) -> list[tuple[str, str]]:
    rewrite = chosen.rewrite
    if rewrite is None:
        return []
    fields = rewrite.fields(field_lines(CIMultiDict(head.fields.items())))
    lines = CIMultiDict((name.decode(), value.decode(errors="replace")) for name, value in fields)
    query, authority = chosen.target.partition("?")[2], rewrite.authority(head.authority)
    sent = RequestHead(head.method, head.path, query, lines, authority)
    return [
        ("told", f"{', '.join(map(repr, dict.fromkeys(values)))} in {reader.place}")
        for reader in rewrite.readers
        if (values := reader.read(sent, {}))
    ]


def _merge(chosen: Plan) -> list[tuple[str, str]]:
    if not isinstance(chosen.shadow, MergedWrite):
        return []
    condition = " if it has no strong entity tag, without If-Match"
    accepts = condition if chosen.shadow.rule.accepts_untagged else ""
    return [("merge", f"into the document of GET {chosen.shadow.read}{accepts and f';{accepts}'}")]


def _operations(chosen: Plan) -> list[tuple[str, str]]:
    if chosen.operation_path is None:
        return []
    facts = []
    for operation in chosen.operation_path.operations:
        if operation is not None and operation.newer is not None and operation.older is not None:
            sides = [operation.older.text, operation.newer.text]
            if chosen.operation_path.request.direction is Direction.DOWN:
                sides.reverse()
            if sides[0] != sides[1]:
                facts.append(("operation", f"{sides[0]} is {sides[1]}"))
    return facts


def _bodies(chosen: Plan, method: str) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if (asking := chosen.request) is not None:
        if (request := asking.for_request(chosen.method(method))) is not None:
            facts.append(("request", f"a body is converted {_way(request)}"))
        if (made := asking.made(chosen.method(method))) is not None:
            facts.append(("request", f"if it has no body, one is created {_way(made)}"))
        if asking.drops_body:
            facts.append(("request", "is sent without a body if conversion leaves it empty"))
    if chosen.response is not None:
        for way, statuses in _statuses(chosen.response, method).items():
            facts.append(("response", f"a body of status {', '.join(statuses)} is converted {way}"))
        for status in range(200, 600):
            answered = chosen.response.status(method, status)
            if answered != status:
                facts.append(("status", f"{status} of the service is returned as {answered}"))
    return facts or [("bodies", "are forwarded unchanged")]


def _statuses(conversion: Conversion, method: str) -> dict[str, list[str]]:
    """Return the statuses whose bodies are converted, grouped by conversion.

    A status is listed separately from its class, such as 4xx, if its conversion differs from that
    of the class.
    """
    ways: dict[str, list[str]] = {}
    for first in (200, 400, 500):
        found = {
            status: conversion.for_response(method, status) for status in range(first, first + 100)
        }
        usual = found[first + 99]
        for status, one in ((f"{first // 100}xx", usual), *found.items()):
            if one is not None and (one != usual or isinstance(status, str)):
                ways.setdefault(_way(one), []).append(str(status))
    return ways


def _way(conversion: BodyConversion) -> str:
    links, ways = conversion.links, []
    if links:
        versions = [links[0].older, *(link.newer for link in links)]
        if conversion.direction is Direction.DOWN:
            versions = [links[0].newer, *(link.older for link in links)]
        ways.append(f"from version {' to '.join(dict.fromkeys(map(str, versions)))}")
    ways += [f"by the document of version {one.version}" for one in conversion.filters]
    return " and ".join(ways)
