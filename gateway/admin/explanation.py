"""Explain how the gateway would handle a request, by the plan that live requests use."""

import re
from collections.abc import Sequence

from multidict import CIMultiDict

from gateway.core.clients import ANONYMOUS
from gateway.core.context import RequestContext
from gateway.core.conversion.chain import Conversion, Direction
from gateway.core.cutover.cutover import BUCKETS, StickyBy, bucket, in_force
from gateway.core.headers import FieldLines
from gateway.core.plan import Decision, Options, Plan, Refusal, plan
from gateway.core.request import RequestHead
from gateway.core.snapshot import Route, Snapshot
from gateway.core.versions.chosen_by import ChosenBy
from gateway.core.versions.reader import Reader

# RFC 9110, section 5.6.2: the tokens that methods and names of header fields are.
_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST = re.compile(rf"\s*({_TCHARS}) +(/[^\s#?]*)(?:\?([^\s#]*))?\s*\Z")
_FIELD = re.compile(rf"\s*({_TCHARS}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*\Z")


def parse_request(line: str, fields: Sequence[str]) -> RequestHead:
    """Return the request head for a line `GET /path?query` and header lines `Name: value`.

    Raises:
        ValueError: a line is malformed; the message has the correct form.
    """
    request = _REQUEST.match(line)
    if request is None:
        raise ValueError(f"{line!r} is not a request; write it like 'GET /person/param?version=1'")
    headers: CIMultiDict[str] = CIMultiDict()
    for text in fields:
        field = _FIELD.match(text)
        if field is None:
            raise ValueError(f"{text!r} is not a header; write it like 'X-API-VERSION: 1'")
        headers.add(field[1], field[2])
    authority = headers.get("Host", "")
    return RequestHead(request[1].upper(), request[2], request[3], headers, authority)


def explain(
    snapshot: Snapshot, head: RequestHead, now: float, peer: str = "", client: str | None = None
) -> str:
    """Return how the gateway would handle a request, with one fact per line.

    Args:
        snapshot: the rules.
        head: the head of the request.
        now: the time of the request, in seconds since 1970.
        peer: the IP address of the client; empty if unknown.
        client: the name of the client; None to derive it from the request.
    """
    facts: list[tuple[str, str]] = []
    context = RequestContext(_client(snapshot, head, peer, client), now)
    if context.client or snapshot.naming is not None:
        facts.append(("client", context.client or "nobody is named"))
    outcome = plan(snapshot, head, context)
    if outcome.endpoint is not None:
        facts.append(("api", outcome.endpoint.api))
        facts.append(("endpoint", outcome.endpoint.template.text))
    readings = _readings(snapshot, head, outcome)
    facts += [
        ("read", f"{', '.join(map(repr, values)) or 'nothing'} in {reader.place}")
        for reader, values in readings
    ]
    match outcome:
        case Refusal(fault=fault):
            facts.append(("answer", f"{fault.status} {fault.code}: {fault.detail}"))
            facts += _says(fault.fields)
        case Options(allow=allow):
            facts.append(("answer", f"204 from the gateway itself, Allow: {allow}"))
        case Plan():
            facts += _plan(outcome, head, readings)
            facts += _brownout(outcome.route, context)
            facts += _cutover(outcome, snapshot, context)
    facts += _says(outcome.fields)
    if outcome.endpoint is not None and outcome.endpoint.vary:
        facts.append(("vary", ", ".join(outcome.endpoint.vary)))
    target = head.path if head.query is None else f"{head.path}?{head.query}"
    lines = [f"{head.method} {target}", *(f"  {name:<9} {fact}" for name, fact in facts)]
    return "\n".join(lines)


Readings = list[tuple[Reader, tuple[str, ...]]]


def _client(snapshot: Snapshot, head: RequestHead, peer: str, client: str | None) -> str:
    if snapshot.naming is None:
        return client or ANONYMOUS
    return snapshot.naming.name(head, peer) if client is None else snapshot.naming.known_as(client)


def _readings(snapshot: Snapshot, head: RequestHead, outcome: Decision) -> Readings:
    found = snapshot.router.find(head.path)
    # Without versions, or if the method alone decides, no version value is read.
    decided = isinstance(outcome, Options) or (
        isinstance(outcome, Refusal) and outcome.fault.supported is None
    )
    if decided or found is None or found[0].selector is None:
        return []
    return [(reader, reader.read(head, found[1])) for reader in found[0].selector.readers]


def _plan(chosen: Plan, head: RequestHead, readings: Readings) -> list[tuple[str, str]]:
    route = chosen.route
    addresses = ", ".join(target.authority for target in route.service.targets)
    speaks = (
        ""
        if route.service_version == route.version
        else f", which speaks version {route.service_version}"
    )
    facts = [
        ("service", f"{route.service.name} at {addresses}{speaks}"),
        ("asks", f"{head.method} {chosen.target}"),
        *_bodies(route, head.method),
    ]
    if route.version is not None:
        facts.insert(0, ("version", f"{route.version}, {_why(chosen, readings)}"))
    if chosen.content_type is not None:
        facts.append(("type", f"{chosen.content_type}, if the answer is JSON"))
    return facts


def _why(chosen: Plan, readings: Readings) -> str:
    if chosen.chosen_by is ChosenBy.NEWEST:
        return "the newest, as OPTIONS names none"
    said = [value for _, values in readings for value in values]
    named = not said or str(chosen.route.version) in said
    return f"by {chosen.chosen_by}" + ("" if named else ", as the newest that fits")


def _says(fields: FieldLines) -> list[tuple[str, str]]:
    return [("says", f"{name.decode()}: {value.decode()}") for name, value in fields]


def _brownout(route: Route, context: RequestContext) -> list[tuple[str, str]]:
    if route.brownout is None:
        return []
    if route.brownout.spares(context):
        return [("brownout", "spares this client")]
    share = route.brownout.share(context.now)
    if share:
        return [("brownout", f"refuses {100 * share:.3g} % of the requests now")]
    return [("brownout", "refuses nothing now")]


def _cutover(chosen: Plan, snapshot: Snapshot, context: RequestContext) -> list[tuple[str, str]]:
    facts = []
    if chosen.cutover_route is not None:
        cutover = snapshot.cutovers[chosen.endpoint.api, str(chosen.version)]
        percent = in_force(cutover, context.overrides)
        whom = f"{percent:g}% of the clients go via version {cutover.via}"
        if cutover.sticky is StickyBy.REQUEST:
            whom = f"{percent:g}% of the requests go via version {cutover.via}, by chance"
        elif context.client:
            number = bucket(cutover.key, context.client)
            whom += (
                f", buckets below {percent * BUCKETS / 100:g}; '{context.client}' is in {number}"
            )
        else:
            whom += ", and who has no name goes last"
        facts.append(("cutover", f"the {chosen.cutover_route} way: {whom}"))
    if chosen.shadow is not None and chosen.route.shadow is not None:
        percent, other = chosen.route.shadow.rule.percent, chosen.shadow
        asked = f"{other.route.service.name} for {other.target}"
        facts.append(("shadow", f"{percent:g}% also ask {asked}, converted, to compare"))
    return facts


def _bodies(route: Route, method: str) -> list[tuple[str, str]]:
    request = route.request and route.request.for_request(method)
    facts = [] if request is None else [("request", f"a body is converted {_way(request)}")]
    if route.response is not None:
        for way, statuses in _statuses(route.response, method).items():
            facts.append(("response", f"a body of status {', '.join(statuses)} is converted {way}"))
    return facts or [("bodies", "pass as they are")]


def _statuses(conversion: Conversion, method: str) -> dict[str, list[str]]:
    """Return status classes, and single statuses that differ, by the conversion of their bodies."""
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


def _way(conversion: Conversion) -> str:
    versions = [conversion.links[0].older, *(link.newer for link in conversion.links)]
    if conversion.direction is Direction.DOWN:
        versions = [conversion.links[0].newer, *(link.older for link in conversion.links)]
    return f"from version {' to '.join(dict.fromkeys(map(str, versions)))}"
