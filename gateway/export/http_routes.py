"""HTTPRoutes of the Gateway API (v1): unconverted versions go straight to their Services.

Less goes straight than with Envoy, since the Gateway API leaves more to its implementations: a
query parameter or a header field that stands there twice may match by either value, and regular
expressions have no syntax of their own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from math import inf

from gateway.core.headers import METHOD_OVERRIDES
from gateway.core.service import CLIENT_HOST, Target
from gateway.core.versions.reader import ExactMatch
from gateway.export.bypass import Bypass, Detour, Straight
from gateway.export.deployed import Deployed
from gateway.export.kubernetes_objects import PORT
from gateway.export.manifest import Manifest, Object

# The rules of an HTTPRoute, and the methods that a match can name (Gateway API, v1).
_RULES = 16
_METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}
)
_MATCHES = 8
# A Service by its name in the cluster (RFC 1035 labels), perhaps of another namespace.
_LABEL = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SERVICE = re.compile(rf"({_LABEL})(?:\.({_LABEL})(?:\.svc(?:\.cluster\.local)?)?)?\Z")
# What implementations decode or merge before they compare a path, or do not; and the longest path.
_COMPARED_OTHERWISE = re.compile(r"%|//")
_LONGEST = 1024
_VARIABLE = "it is written with environment variables, whose values are not exported"
# Fields by which a service could be given another request than the one that was matched.
_REMOVED = sorted({b"forwarded", b"x-shadow", *METHOD_OVERRIDES})


@dataclass(frozen=True, slots=True)
class Attachment:
    """The Gateway that serves the routes.

    Attributes:
        gateway: Its name.
        namespace: Its namespace; empty for that of the routes.
        hostnames: The host names of the routes; empty for all of the Gateway's.
    """

    gateway: str
    namespace: str = ""
    hostnames: tuple[str, ...] = ()


def http_routes(
    deployed: Deployed, planned: Bypass, attachment: Attachment
) -> tuple[list[Manifest], list[str]]:
    """Return the HTTPRoutes, and what goes where and why."""
    hidden = deployed.files.variable_apis  # their paths may hold values
    kept: list[Detour] = []
    sent: dict[str, list[Straight]] = {}
    for one in planned.straight:
        if one.endpoint.api in hidden:
            continue
        reason = _reason(deployed, one)
        if reason is None:
            sent.setdefault(one.endpoint.template.text, []).append(one)
        else:
            kept.append(Detour(one.endpoint, one.route, reason))
    flat = tuple(one for group in sent.values() for one in group)
    detours = (one for one in planned.detours if one.endpoint.api not in hidden)
    told = Bypass(planned.snapshot, flat, (*kept, *detours), planned.logged)
    lines = told.lines + [f"{api}: to the gateway, because {_VARIABLE}" for api in sorted(hidden)]
    routes = []
    for path, group in sent.items():
        for part in range(0, len(group), _RULES):
            name = _name(deployed.name, group[0].endpoint.api, path, part // _RULES)
            about = Bypass(planned.snapshot, tuple(group[part : part + _RULES]), (), ())
            rules = [_rule(one) for one in about.straight]
            content = _route(deployed, attachment, name, rules)
            routes.append(Manifest(f"httproute-{name}", tuple(about.lines), content))
    everything = {"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}
    rest: Object = {
        **everything,
        "backendRefs": [{"name": deployed.name, "port": PORT}],
        "timeouts": {"request": "0s"},
    }
    content = _route(deployed, attachment, deployed.name, [rest])
    comments = ("Everything that no other route takes goes to the gateway.",)
    routes.append(Manifest(f"httproute-{deployed.name}", comments, content))
    return routes, lines


def _reason(deployed: Deployed, one: Straight) -> str | None:
    """Return why a version does not go straight, or None."""
    service, methods = one.route.service, one.endpoint.methods or ()
    if one.match != ExactMatch():
        return "the Gateway API leaves open what a value that stands there twice matches"
    if one.path.captures:
        return "the Gateway API leaves open how a path with captures is matched"
    if any(_COMPARED_OTHERWISE.search(path.text) for path in (one.path, one.service_path)):
        return "the Gateway API leaves open how a path with '%' or '//' is compared"
    if max(len(one.path.text), len(one.service_path.text)) > _LONGEST:
        return f"the Gateway API takes no path of more than {_LONGEST} characters"
    if service.name in deployed.files.variable_services:
        return _VARIABLE
    if not all(_SERVICE.match(target.host) for target in service.targets):
        return f"service {service.name} is not addressed as a Service of the cluster"
    if not _METHODS.issuperset(methods) or len(methods) > _MATCHES:
        return "it has methods that the Gateway API does not match"
    if service.host != CLIENT_HOST:
        return f"service {service.name} is asked by another Host"
    return None


def _name(name: str, api: str, path: str, part: int) -> str:
    """Return the name of a route, which a change of other endpoints does not change."""
    plain = re.sub(r"[^a-z0-9]+", "-", api.lower()).strip("-")[:40]
    code = sha256(f"{api}\0{path}\0{part}".encode()).hexdigest()[:8]
    return f"{name}-{plain}-{code}" if plain else f"{name}-{code}"


def _route(deployed: Deployed, attachment: Attachment, name: str, rules: list[Object]) -> Object:
    parent = {"name": attachment.gateway}
    if attachment.namespace:
        parent["namespace"] = attachment.namespace
    hostnames = {"hostnames": list(attachment.hostnames)} if attachment.hostnames else {}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": deployed.metadata(name),
        "spec": {"parentRefs": [parent], **hostnames, "rules": rules},
    }


def _rule(one: Straight) -> Object:
    path = {"path": {"type": "Exact", "value": one.path.text}}
    methods = one.endpoint.methods
    whole = one.route.service.timeouts.whole
    return {
        "matches": [path] if methods is None else [{**path, "method": name} for name in methods],
        "filters": list(_filters(one)),
        "backendRefs": [_backend(target) for target in one.route.service.targets],
        "timeouts": {"request": "0s" if whole == inf else duration(whole)},
    }


def _filters(one: Straight) -> Iterator[Object]:
    removed = [name.decode() for name in _REMOVED]
    yield {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": removed}}
    if one.service_path.text != one.path.text:
        path = {"type": "ReplaceFullPath", "replaceFullPath": one.service_path.text}
        yield {"type": "URLRewrite", "urlRewrite": {"path": path}}
    answers: Object = {}
    if one.route.fields:
        answers["set"] = [
            {"name": name.decode(), "value": value.decode()} for name, value in one.route.fields
        ]
    if one.endpoint.vary:
        answers["add"] = [{"name": "Vary", "value": ", ".join(one.endpoint.vary)}]
    if answers:
        yield {"type": "ResponseHeaderModifier", "responseHeaderModifier": answers}


def _backend(target: Target) -> Object:
    found = _SERVICE.match(target.host)
    assert found is not None  # `_reason` has looked
    namespace = {"namespace": found[2]} if found[2] else {}
    return {"name": found[1], **namespace, "port": target.port}


def duration(seconds: float) -> str:
    """Return a time as the Gateway API writes it (GEP-2257)."""
    milliseconds = max(1, round(seconds * 1000))
    parts = (
        (milliseconds // 3_600_000, "h"),
        (milliseconds // 60_000 % 60, "m"),
        (milliseconds // 1000 % 60, "s"),
        (milliseconds % 1000, "ms"),
    )
    return "".join(f"{number}{unit}" for number, unit in parts if number)
