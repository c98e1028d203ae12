"""The plan of a version that has a shadow, or a cutover, or both."""

from dataclasses import replace

import pytest

from gateway.base.errors import FaultCode
from gateway.base.overrides import Overrides
from gateway.base.path_templates import parse_template
from gateway.base.request import RequestContext
from gateway.conversion.chain import Conversion
from gateway.conversion.changes.rename import rename_parameter
from gateway.conversion.version_step import Direction, VersionLink
from gateway.rollout.cutover import CutoverRoute, StickyBy, VersionCutover
from gateway.rollout.shadow import DryRunMark, VersionShadow
from gateway.routing.plan import Plan, Refusal, plan
from gateway.routing.snapshot import CutoverAlternative, Endpoint, Route, ShadowAlternative
from tests.gateway.world import PATH, PERSON_V1, PERSON_V2, V1, V2, head, person, snapshot

SERVED = ("person", "1")
NEW = Route(
    V1,
    V2,
    PERSON_V2,
    parse_template("/v{version}/person"),
    Conversion((), Direction.UP),
    Conversion((), Direction.DOWN),
)
OLD = Route(V1, V1, PERSON_V1, parse_template("/old"), fields=((b"Deprecation", b"@1"),))
SHADOW = ShadowAlternative(VersionShadow(SERVED), NEW)
CUTOVER = CutoverAlternative(VersionCutover(SERVED, "2", 50.0, StickyBy.REQUEST), NEW)


def planned(route: Route, context: RequestContext, method: str = "GET") -> Plan:
    """Return the plan of a request to an endpoint that serves version 1 by a route."""
    endpoint: Endpoint = replace(
        person("/v{version}/person", PATH, methods=None), routes={V1: route}
    )
    outcome = plan(snapshot([endpoint]), head("/v1/person?q=1", method=method), context)
    assert isinstance(outcome, Plan)
    return outcome


@pytest.mark.parametrize(("draw", "route"), [(0.4, CutoverRoute.NEW), (0.6, CutoverRoute.OLD)])
def test_a_cutover_picks_the_way(draw: float, route: CutoverRoute) -> None:
    """The answer says of its version what it always says."""
    chosen = planned(replace(OLD, cutover=CUTOVER), RequestContext(cutover_draw=draw))
    assert chosen.cutover_route is route
    assert chosen.route.service is (PERSON_V2 if route is CutoverRoute.NEW else PERSON_V1)
    assert chosen.target == ("/v2/person?q=1" if route is CutoverRoute.NEW else "/old?q=1")
    assert chosen.version == V1
    assert chosen.fields == OLD.fields


def test_orders_decide() -> None:
    route = replace(OLD, cutover=CUTOVER)
    assert (
        planned(route, RequestContext(overrides=Overrides(percents={SERVED: 100}))).cutover_route
        is CutoverRoute.NEW
    )
    assert (
        planned(
            route, RequestContext(cutover_draw=0, overrides=Overrides(percents={SERVED: 0}))
        ).cutover_route
        is CutoverRoute.OLD
    )


def test_a_shadow_is_a_plan_beside_the_plan() -> None:
    chosen = planned(replace(OLD, shadow=SHADOW), RequestContext())
    assert (chosen.route.service, chosen.target, chosen.cutover_route) == (
        PERSON_V1,
        "/old?q=1",
        None,
    )
    assert isinstance(chosen.shadow, Plan)
    assert (chosen.shadow.route, chosen.shadow.target) == (NEW, "/v2/person?q=1")


@pytest.mark.parametrize(
    ("method", "target"), [("POST", "/v2/person?q=1&try=yes"), ("GET", "/v2/person?q=1")]
)
def test_a_dry_run_is_marked(method: str, target: str) -> None:
    rule = VersionShadow(SERVED, dry_run=DryRunMark("try", "yes", in_query=True))
    chosen = planned(replace(OLD, shadow=ShadowAlternative(rule, NEW)), RequestContext(), method)
    assert chosen.target == "/old?q=1"
    assert isinstance(chosen.shadow, Plan)
    assert chosen.shadow.target == target


def test_what_cannot_be_asked_elsewhere_would_be_refused() -> None:
    """The client's own answer does not depend on it."""
    link = VersionLink(V1, V2, (), query=(rename_parameter("page", "q"),))
    strict = replace(NEW, request=Conversion((link,), Direction.UP))
    route = replace(OLD, shadow=ShadowAlternative(VersionShadow(SERVED), strict))
    endpoint = replace(person("/v{version}/person", PATH, methods=None), routes={V1: route})
    outcome = plan(snapshot([endpoint]), head("/v1/person?q=1&page=2"), RequestContext())
    assert isinstance(outcome, Plan)
    assert outcome.target == "/old?q=1&page=2"
    assert isinstance(outcome.shadow, Refusal)
    assert outcome.shadow.fault.code == FaultCode.UNCONVERTIBLE_REQUEST


@pytest.mark.parametrize(("method", "asked"), [("GET", True), ("HEAD", True), ("POST", False)])
def test_what_may_be_asked_twice(method: str, asked: bool) -> None:
    chosen = planned(replace(OLD, shadow=SHADOW), RequestContext(), method)
    assert (chosen.shadow is not None) is asked


@pytest.mark.parametrize(
    ("percent", "draw", "asked"),
    [(0, 0.0, False), (5, 0.04, True), (5, 0.05, False), (100, 0.999, True)],
)
def test_how_many_are_asked_twice(percent: float, draw: float, asked: bool) -> None:
    route = replace(OLD, shadow=ShadowAlternative(VersionShadow(SERVED, percent), NEW))
    assert (planned(route, RequestContext(shadow_draw=draw)).shadow is not None) is asked


def test_who_is_moved_casts_no_shadow() -> None:
    route = replace(OLD, shadow=SHADOW, cutover=CUTOVER)
    assert planned(route, RequestContext(cutover_draw=0)).shadow is None
    assert planned(route, RequestContext(cutover_draw=1)).shadow is not None
