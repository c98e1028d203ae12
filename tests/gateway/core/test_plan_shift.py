"""The plan of a version that has a shadow, or a cutover, or both."""

from dataclasses import replace

import pytest

from gateway.core.asker import Asker
from gateway.core.conversion.chain import Conversion, Direction, Link
from gateway.core.conversion.parameters import Renamed
from gateway.core.cutover import BUCKETS, Arm, Cutover, Sticky
from gateway.core.orders import Orders
from gateway.core.plan import Plan, plan
from gateway.core.routing import parse_template
from gateway.core.shadow import Shadow
from gateway.core.snapshot import Beside, Endpoint, Leg
from tests.gateway.core.world import PATH, PERSON_V1, PERSON_V2, V1, V2, head, person, snapshot

SERVED = ("person", "1")
NEW = Leg(
    V1,
    V2,
    PERSON_V2,
    parse_template("/v{version}/person"),
    Conversion((), Direction.UP),
    Conversion((), Direction.DOWN),
)
OLD = Leg(V1, V1, PERSON_V1, parse_template("/old"), fields=((b"Deprecation", b"@1"),))
SHADOW = Beside(Shadow(SERVED), NEW)
CUTOVER = Beside(Cutover(SERVED, "2", 50.0, Sticky.REQUEST), NEW)


def planned(leg: Leg, asker: Asker, method: str = "GET") -> Plan:
    """Return the plan of a request to an endpoint that serves version 1 by a leg."""
    endpoint: Endpoint = replace(person("/v{version}/person", PATH, methods=None), legs={V1: leg})
    outcome = plan(snapshot([endpoint]), head("/v1/person?q=1", method=method), asker)
    assert isinstance(outcome, Plan)
    return outcome


@pytest.mark.parametrize(("chance", "arm"), [(0.4, Arm.NEW), (0.6, Arm.OLD)])
def test_a_cutover_picks_the_way(chance: float, arm: Arm) -> None:
    """The answer says of its version what it always says."""
    chosen = planned(replace(OLD, cutover=CUTOVER), Asker(chance=chance / BUCKETS))
    assert chosen.arm is arm
    assert chosen.leg.service is (PERSON_V2 if arm is Arm.NEW else PERSON_V1)
    assert chosen.target == ("/v2/person?q=1" if arm is Arm.NEW else "/old?q=1")
    assert chosen.version == V1
    assert chosen.fields == OLD.fields


def test_orders_decide() -> None:
    leg = replace(OLD, cutover=CUTOVER)
    assert planned(leg, Asker(orders=Orders(percents={SERVED: 100}))).arm is Arm.NEW
    assert planned(leg, Asker(chance=0, orders=Orders(percents={SERVED: 0}))).arm is Arm.OLD


def test_a_shadow_is_a_plan_beside_the_plan() -> None:
    chosen = planned(replace(OLD, shadow=SHADOW), Asker())
    assert (chosen.leg.service, chosen.target, chosen.arm) == (PERSON_V1, "/old?q=1", None)
    assert chosen.shadow is not None
    assert (chosen.shadow.leg, chosen.shadow.target) == (NEW, "/v2/person?q=1")


def test_what_cannot_be_asked_elsewhere_is_not() -> None:
    """The client's own answer does not depend on it."""
    link = Link(V1, V2, (), query=(Renamed("page", "q"),))
    strict = replace(NEW, request=Conversion((link,), Direction.UP))
    leg = replace(OLD, shadow=Beside(Shadow(SERVED), strict))
    endpoint = replace(person("/v{version}/person", PATH, methods=None), legs={V1: leg})
    outcome = plan(snapshot([endpoint]), head("/v1/person?q=1&page=2"), Asker())
    assert isinstance(outcome, Plan)
    assert (outcome.target, outcome.shadow) == ("/old?q=1&page=2", None)


@pytest.mark.parametrize(("method", "asked"), [("GET", True), ("HEAD", True), ("POST", False)])
def test_what_may_be_asked_twice(method: str, asked: bool) -> None:
    chosen = planned(replace(OLD, shadow=SHADOW), Asker(), method)
    assert (chosen.shadow is not None) is asked


@pytest.mark.parametrize(
    ("percent", "chance", "asked"),
    [(0, 0.999, False), (5, 0.94, False), (5, 0.96, True), (100, 0.0, True)],
)
def test_how_many_are_asked_twice(percent: float, chance: float, asked: bool) -> None:
    leg = replace(OLD, shadow=Beside(Shadow(SERVED, percent), NEW))
    assert (planned(leg, Asker(chance=chance)).shadow is not None) is asked


def test_who_is_moved_casts_no_shadow() -> None:
    leg = replace(OLD, shadow=SHADOW, cutover=CUTOVER)
    assert planned(leg, Asker(chance=0)).shadow is None
    assert planned(leg, Asker(chance=1)).shadow is not None
