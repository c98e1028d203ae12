"""The plan for a version with a shadow, a cutover, or both."""

from dataclasses import replace

import pytest

from gateway.base.errors import FaultCode
from gateway.base.overrides import Overrides
from gateway.base.path_templates import parse_template
from gateway.base.request import RequestContext
from gateway.conversion.chain import Conversion
from gateway.conversion.changes.rename import rename_parameter
from gateway.conversion.version_step import Direction, VersionLink
from gateway.rollout.cutover import CutoverRoute, VersionCutover
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
CUTOVER = CutoverAlternative(VersionCutover(SERVED, "2", 50.0, "request"), NEW)


def planned(route: Route, context: RequestContext, method: str = "GET") -> Plan:
    endpoint: Endpoint = replace(
        person("/v{version}/person", PATH, methods=None), routes={V1: route}
    )
    outcome = plan(snapshot([endpoint]), head("/v1/person?q=1", method=method), context)
    assert isinstance(outcome, Plan)
    return outcome


@pytest.mark.parametrize(("draw", "route"), [(0.4, CutoverRoute.NEW), (0.6, CutoverRoute.OLD)])
def test_a_cutover_selects_the_route(draw: float, route: CutoverRoute) -> None:
    """The response has the header fields of the client's version in either case."""
    chosen = planned(replace(OLD, cutover=CUTOVER), RequestContext(cutover_draw=draw))
    assert chosen.cutover_route is route
    assert chosen.route.service is (PERSON_V2 if route is CutoverRoute.NEW else PERSON_V1)
    assert chosen.target == ("/v2/person?q=1" if route is CutoverRoute.NEW else "/old?q=1")
    assert chosen.version == V1
    assert chosen.fields == OLD.fields


def test_an_override_of_the_percentage_selects_the_route() -> None:
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


def test_a_plan_contains_the_plan_of_the_shadow() -> None:
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
def test_a_dry_run_of_a_write_has_its_query_parameter(method: str, target: str) -> None:
    rule = VersionShadow(SERVED, dry_run=DryRunMark("try", "yes", in_query=True))
    chosen = planned(replace(OLD, shadow=ShadowAlternative(rule, NEW)), RequestContext(), method)
    assert chosen.target == "/old?q=1"
    assert isinstance(chosen.shadow, Plan)
    assert chosen.shadow.target == target


def test_a_shadow_request_that_cannot_be_converted_is_refused() -> None:
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
def test_only_reads_are_repeated_by_default(method: str, asked: bool) -> None:
    chosen = planned(replace(OLD, shadow=SHADOW), RequestContext(), method)
    assert (chosen.shadow is not None) is asked


@pytest.mark.parametrize(
    ("percent", "draw", "asked"),
    [(0, 0.0, False), (5, 0.04, True), (5, 0.05, False), (100, 0.999, True)],
)
def test_the_configured_percentage_of_requests_is_repeated(
    percent: float, draw: float, asked: bool
) -> None:
    route = replace(OLD, shadow=ShadowAlternative(VersionShadow(SERVED, percent), NEW))
    assert (planned(route, RequestContext(shadow_draw=draw)).shadow is not None) is asked


def test_a_request_that_a_cutover_moves_is_not_repeated() -> None:
    route = replace(OLD, shadow=SHADOW, cutover=CUTOVER)
    assert planned(route, RequestContext(cutover_draw=0)).shadow is None
    assert planned(route, RequestContext(cutover_draw=1)).shadow is not None
