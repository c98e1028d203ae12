"""The bypass: which versions of which endpoints a front proxy may send straight to their services.

What needs a conversion, a date, a draw, a comparison of several values or a rewritten answer stays
with the gateway. Each version that stays has the reason.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gateway.core.answers.link_directory import served_path
from gateway.core.clients import AddressName, ClientNaming, ClientSource, HeaderName
from gateway.core.routing import Template, parse_template
from gateway.core.service import TARGET_HOST
from gateway.core.snapshot import Endpoint, Route, Snapshot
from gateway.core.versions.reader import ExactMatch


class Straight(NamedTuple):
    """A version of an endpoint that goes straight to its service.

    Attributes:
        endpoint: The endpoint.
        route: The route of the version.
        match: How its requests are recognised, beside the path.
        path: The path of its requests, with the version filled in where the path names it.
        service_path: The path by which the service is asked.
    """

    endpoint: Endpoint
    route: Route
    match: ExactMatch
    path: Template
    service_path: Template


class Detour(NamedTuple):
    """A version of an endpoint that goes to the gateway, and the reason."""

    endpoint: Endpoint
    route: Route
    reason: str


@dataclass(frozen=True, slots=True)
class Bypass:
    """The versions of all endpoints, each straight to its service or by way of the gateway.

    Attributes:
        snapshot: The rules.
        straight: The versions that go straight to their services.
        detours: The versions that go to the gateway.
        logged: The header fields that a log needs to name clients.
    """

    snapshot: Snapshot
    straight: tuple[Straight, ...]
    detours: tuple[Detour, ...]
    logged: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """What goes where and why, a line for each version of an endpoint."""
        lines = [
            f"{_title(one.endpoint, one.route)}: straight to {one.route.service.name}"
            for one in self.straight
        ]
        return lines + [
            f"{_title(one.endpoint, one.route)}: to the gateway, because {one.reason}"
            for one in self.detours
        ]


def bypass(snapshot: Snapshot, kept: Collection[str] = ()) -> Bypass:
    """Return which versions may go straight to their services.

    Args:
        snapshot: The rules.
        kept: The names of the APIs that stay with the gateway as a whole.

    Raises:
        ValueError: There is no API of a name in `kept`.
    """
    known = [api.name for api in snapshot.apis]
    for name in kept:
        if name not in known:
            raise ValueError(f"no API is called '{name}'; known: {', '.join(known)}")
    logged = logged_fields(snapshot.naming)
    straight: list[Straight] = []
    detours: list[Detour] = []
    for endpoint in snapshot.router:
        for route in endpoint.routes.values():
            found = _judge(snapshot, endpoint, route, kept, logged)
            if isinstance(found, str):
                detours.append(Detour(endpoint, route, found))
            else:
                straight.append(found)
    return Bypass(snapshot, tuple(straight), tuple(detours), logged or ())


def logged_fields(naming: ClientNaming | None) -> tuple[str, ...] | None:
    """Return the header fields that a log needs to name clients; None where a log cannot.

    A log must not hold a secret, such as an API key, nor what the rules hash or shorten.
    """
    if naming is None:
        return ()
    wanted = [_logged(source) for source in naming.sources]
    if naming.key or None in wanted:
        return None
    return tuple(dict.fromkeys(name for names in wanted for name in names or ()))


def _logged(source: ClientSource) -> tuple[str, ...] | None:
    if isinstance(source, HeaderName):
        return (source.field,)
    whole = isinstance(source, AddressName) and (source.ipv4, source.ipv6) == (32, 128)
    return () if whole else None


def _judge(
    snapshot: Snapshot,
    endpoint: Endpoint,
    route: Route,
    kept: Collection[str],
    logged: tuple[str, ...] | None,
) -> Straight | str:
    """Return the version as it goes straight, or the reason why it does not."""
    if not snapshot.bypass:
        return "'bypass' is not set in the rules"
    if endpoint.api in kept:
        return "its API is kept there"
    if logged is None:
        return "clients are named by what a log must not hold"
    reason = next(_reasons(snapshot, endpoint, route), None)
    if reason is not None:
        return reason
    path, match = endpoint.template, ExactMatch()
    if endpoint.selector is not None and endpoint.selector.readers:
        if len(endpoint.selector.readers) > 1:
            return "several places may name the version, and must agree"
        (reader,) = endpoint.selector.readers
        assert route.version is not None  # as there is a selector
        exact = reader.exact(route.version)
        if exact is None:
            return f"no single comparison finds the version in {reader.place}"
        match = exact
        path = parse_template(path.text.replace("{version}", str(route.version)))
    return Straight(endpoint, route, match, path, served_path(endpoint, route))


def _reasons(snapshot: Snapshot, endpoint: Endpoint, route: Route) -> Iterator[str]:
    if route.request is not None or route.response is not None:
        yield f"it is converted from version {route.service_version}"
    if route.cutover is not None:
        yield "a cutover moves it"
    if route.shadow is not None:
        yield "its requests are repeated for a shadow"
    if route.brownout is not None:
        yield "it has brownouts"
    if route.lifecycle is not None:
        yield "it has a lifecycle with dates"
    if route.content_type is not None:
        yield "Accept has weights, and answers bear the version's media type"
    if route.version in endpoint.errors:
        yield "its errors have a shape of their own"
    if endpoint.max_body is not None or snapshot.limits.body is not None:
        yield "the size of request bodies is limited"
    if route.service.host == TARGET_HOST and len(route.service.targets) > 1:
        yield "its service is asked by the address of one of several targets"


def _title(endpoint: Endpoint, route: Route) -> str:
    version = "" if route.version is None else f" version {route.version}"
    return f"{endpoint.api}{version} at {endpoint.template.text}"
