"""Routes of Envoy: straight to services, fixed answers, and everything else to the gateway.

Envoy takes the first route that matches. The routes of an endpoint stand together, and a wide one
behind them sends what they leave to the gateway, so that no other endpoint gets it.

It tries one route after the other, and of each the header fields before the path, so that long ways
and patterns cost. Paths that are compared as a whole therefore come first, in the order of the
rules, and of each endpoint what goes straight.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from gateway.core.headers import METHOD_OVERRIDES, FieldLines
from gateway.core.routing import Template
from gateway.core.service import CLIENT_HOST, TARGET_HOST
from gateway.core.snapshot import Endpoint, Snapshot
from gateway.export import path_pattern
from gateway.export.access_log.counted_route import CountedRoute
from gateway.export.bypass import Bypass, Detour, Straight
from gateway.export.envoy_clusters import GATEWAY, cluster_name, seconds, type_url
from gateway.export.fixed_answer import OTHER_METHOD, FixedAnswer, fixed_answers
from gateway.export.manifest import Object

# The longest body that Envoy answers itself (RouteConfiguration.max_direct_response_body_size).
_LONGEST = 4096
_UNMATCHED = "Envoy cannot tell its requests apart by a pattern"
# The groups of a pattern that a substitution can name, by one digit (RE2::Rewrite).
_GROUPS = 9
_OTHER_HOSTS = "envoy.retry_host_predicates.previous_hosts"
_PREVIOUS_HOSTS = "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"


def matched(planned: Bypass) -> Bypass:
    """Return the bypass without the versions that Envoy has no match for, which stay."""
    kept = tuple(one for one in planned.straight if _match(one) is None)
    return replace(
        planned,
        straight=tuple(one for one in planned.straight if one not in kept),
        detours=(*(Detour(one.endpoint, one.route, _UNMATCHED) for one in kept), *planned.detours),
    )


def routes(planned: Bypass) -> Iterator[Object]:
    """Yield the routes of a bypass that is `matched`, in the order in which they are tried."""
    for name in sorted(METHOD_OVERRIDES):
        # The gateway refuses a request whose service would see another method.
        match = {"prefix": "/", "headers": [{"name": name.decode(), "present_match": True}]}
        yield _to_gateway("method overrides", match)
    unmet = {
        "name": "expect",
        "invert_match": True,
        "string_match": {"exact": "100-continue", "ignore_case": True},
    }
    yield _to_gateway("expectations", {"prefix": "/", "headers": [unmet]})
    straight: dict[Template, list[Straight]] = {}
    for one in planned.straight:
        straight.setdefault(one.endpoint.template, []).append(one)
    last: list[Endpoint] = []
    for endpoint in planned.snapshot.router:
        own = straight.get(endpoint.template)
        if own is None or not _has_paths_of_its_own(planned.snapshot, endpoint, own):
            last.append(endpoint)
            continue
        yield from _at(planned.snapshot, endpoint, own)
        if endpoint.template.captures:
            last.append(endpoint)
            del straight[endpoint.template]
        else:
            yield _rest(endpoint)
    for endpoint in sorted(last, key=lambda endpoint: path_pattern.rank(endpoint.template)):
        # Where nothing goes straight, the gateway is asked for most requests anyway.
        if endpoint.template in straight:
            yield from _at(planned.snapshot, endpoint, straight[endpoint.template])
        yield _rest(endpoint)
    yield _to_gateway("everything else", {"prefix": "/"})


def _has_paths_of_its_own(snapshot: Snapshot, endpoint: Endpoint, straight: list[Straight]) -> bool:
    """Whether the routes of an endpoint are for whole paths, which no other endpoint gets."""
    if any(one.path.captures for one in straight):
        return False
    paths = {one.path.text for one in straight}
    paths.update(answer.path for answer in fixed_answers(snapshot, endpoint))
    found = [snapshot.router.find(path) for path in paths]
    return all(each is not None and each[0] is endpoint for each in found)


def _at(snapshot: Snapshot, endpoint: Endpoint, straight: list[Straight]) -> Iterator[Object]:
    """Yield the routes of one endpoint for its paths; what goes straight first, as it is most."""
    for one in straight:
        match = _match(one)
        assert match is not None  # as it is matched
        yield _straight(one, match)
    yield from _fixed_answers(snapshot, endpoint)


def _rest(endpoint: Endpoint) -> Object:
    """Return the route to the gateway of all paths of an endpoint."""
    template = endpoint.template
    if template.captures:
        match: Object = {"safe_regex": {"regex": path_pattern.wide(template)}}
    else:
        match = {"path": template.text}
    return _to_gateway(f"the rest of {endpoint.api} at {template.text}", match)


def _to_gateway(name: str, match: Object) -> Object:
    # The gateway has its own timeouts. A request that reached no gateway may go to another one.
    action = {
        "cluster": GATEWAY,
        "timeout": "0s",
        "idle_timeout": "0s",
        "retry_policy": {
            "retry_on": "connect-failure,reset-before-request",
            "num_retries": 2,
            "retry_host_predicate": [
                {"name": _OTHER_HOSTS, "typed_config": {"@type": type_url(_PREVIOUS_HOSTS)}}
            ],
            "host_selection_retry_max_attempts": 3,
        },
    }
    return {"name": name, "match": match, "route": action}


def _path_match(path: Template) -> Object:
    if path.captures:
        return {"safe_regex": {"regex": path_pattern.narrow(path)}}
    return {"path": path.text}


def _method(name: str) -> Object:
    return {"name": ":method", "string_match": {"exact": name}}


def _none_of(methods: Iterable[str]) -> list[Object]:
    return [{**_method(name), "invert_match": True} for name in methods]


def _one_of(methods: Sequence[str] | None) -> list[Object]:
    """Return what requests with one of some methods match; None for all."""
    if methods is None:
        return []
    if len(methods) == 1:
        return [_method(methods[0])]
    pattern = "|".join(map(re.escape, methods))
    return [{"name": ":method", "string_match": {"safe_regex": {"regex": pattern}}}]


def _match(one: Straight) -> Object | None:
    """Return what only requests of the version match; None where Envoy has no such match."""
    if len(one.path.captures) > _GROUPS:
        return None
    found: list[Object] = []
    host, query, header = one.match
    if host is not None:
        pattern = rf"(?i){re.escape(host)}\.?(?::[0-9]*)?"
        found.append({"name": ":authority", "string_match": {"safe_regex": {"regex": pattern}}})
    if query is not None:
        target = path_pattern.with_parameter(one.path, *query)
        if target is None:
            return None
        found.append(_target(target))
    if header is not None:
        name, value = header[0].lower(), header[1]
        # Envoy compares each line of a field by itself, and one that fits is enough for it.
        other = {"safe_regex": {"regex": path_pattern.other_value(value)}}
        found.append({"name": name, "string_match": {"exact": value}})
        found.append({"name": name, "string_match": other, "invert_match": True})
    found += _one_of(one.endpoint.methods)
    match = _path_match(one.path)
    return {**match, "headers": found} if found else match


def _target(pattern: str) -> Object:
    """Return a match of path and query together, which :path has."""
    return {"name": ":path", "string_match": {"safe_regex": {"regex": pattern}}}


def _straight(one: Straight, match: Object) -> Object:
    endpoint, route = one.endpoint, one.route
    service = route.service
    waits = service.timeouts
    action: Object = {
        "cluster": cluster_name(service),
        "timeout": "0s" if waits.whole == inf else seconds(waits.whole),
        "idle_timeout": seconds(max(waits.first_byte, waits.between_bytes)),
    }
    if one.service_path.text != one.path.text:
        if one.path.captures:
            action["regex_rewrite"] = {
                "pattern": {"regex": path_pattern.narrow(one.path)},
                "substitution": path_pattern.substitution(one.service_path, one.path.captures),
            }
        else:
            action["prefix_rewrite"] = one.service_path.text
    if service.host == TARGET_HOST:
        action["host_rewrite_literal"] = service.targets[0].authority
    elif service.host != CLIENT_HOST:
        action["host_rewrite_literal"] = service.host
    version = "" if route.version is None else str(route.version)
    counted = CountedRoute(endpoint.api, version, endpoint.template.text)
    made: Object = {"name": counted.name, "match": match, "route": action}
    if route.overrules:
        made["response_headers_to_remove"] = sorted(name.decode() for name in route.overrules)
    added = _set(route.fields)
    added += [_field("Vary", name, "APPEND_IF_EXISTS_OR_ADD") for name in endpoint.vary]
    if added:
        made["response_headers_to_add"] = added
    return made


def _fixed_answers(snapshot: Snapshot, endpoint: Endpoint) -> Iterator[Object]:
    """Yield the routes of the fixed answers that Envoy can give."""
    for answer in fixed_answers(snapshot, endpoint):
        match = _fixed_match(endpoint, answer)
        if match is not None and len(answer.body) <= _LONGEST:
            yield _fixed(endpoint, answer, match)


def _fixed_match(endpoint: Endpoint, answer: FixedAnswer) -> Object | None:
    match: Object = {"path": answer.path}
    assert endpoint.methods is not None  # otherwise nothing is fixed
    if answer.method == OTHER_METHOD:
        known = dict.fromkeys((*endpoint.methods, "OPTIONS"))
        return {**match, "headers": _none_of(known)}
    if answer.method:
        return {**match, "headers": [_method(answer.method)]}
    assert endpoint.selector is not None  # as a version is missing
    (reader,) = endpoint.selector.readers
    version = next(iter(endpoint.selector.supported.values()))
    exact = reader.exact(version)
    if exact is None:
        return None
    if exact.header is not None:
        absent = {"name": exact.header[0].lower(), "present_match": True, "invert_match": True}
        return {**match, "headers": [absent, *_one_of(endpoint.methods)]}
    target = None
    if exact.query is not None:
        target = path_pattern.without_parameter(endpoint.template, exact.query[0])
    if target is None:
        return None
    return {**match, "headers": [_target(target), *_one_of(endpoint.methods)]}


def _fixed(endpoint: Endpoint, answer: FixedAnswer, match: Object) -> Object:
    what = answer.method or "without a version"
    if answer.method == OTHER_METHOD:
        what = "another method"
    action: Object = {"status": answer.status}
    if answer.body:
        action["body"] = {"inline_string": answer.body.decode()}
    return {
        "name": f"fixed answer {answer.status} of {endpoint.api} at {answer.path}, {what}",
        "match": match,
        "direct_response": action,
        "response_headers_to_add": _set(answer.fields),
    }


def _set(fields: FieldLines) -> list[Object]:
    action = "OVERWRITE_IF_EXISTS_OR_ADD"
    return [_field(name.decode(), value.decode(), action) for name, value in fields]


def _field(name: str, value: str, how: str) -> Object:
    # A percent sign begins a variable of Envoy.
    written = value.replace("%", "%%")
    return {"header": {"key": name, "value": written}, "append_action": how}
