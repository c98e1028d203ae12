"""The plan for versions with different operations: for clients, cutovers and shadows."""

from dataclasses import replace
from urllib.parse import unquote

import pytest

from gateway.base.errors import FaultCode
from gateway.base.path_templates import parse_template
from gateway.base.request import RequestContext
from gateway.conversion.chain import Conversion
from gateway.conversion.changes.python import call_for_parameter
from gateway.conversion.message import MessageView
from gateway.conversion.operation import MappedOperation, Substitute, parse_operation
from gateway.conversion.version_step import Direction, VersionLink
from gateway.rollout.cutover import CutoverRoute, VersionCutover
from gateway.rollout.shadow import VersionShadow
from gateway.routing.plan import Decision, Plan, Refusal, plan
from gateway.routing.snapshot import CutoverAlternative, Endpoint, Route, ShadowAlternative
from gateway.versions.reader import VersionRewrite
from gateway.versions.selection import Selector
from gateway.versions.version import Version
from tests.gateway.world import (
    PERSON_V1,
    PERSON_V2,
    QUERY,
    SUPPORTED,
    USERS,
    V1,
    V2,
    head,
    snapshot,
)

KEY = ("person", "1")


def operation(
    newer: str | None, older: str, substitute: Substitute | None = None
) -> MappedOperation:
    sides = (None if newer is None else parse_operation(newer)), parse_operation(older)
    return MappedOperation(*sides, {201: 200} if newer else {}, substitute)


LINK = VersionLink(
    V1,
    V2,
    (),
    operations=(
        operation("POST /payments", "POST /pay"),
        operation("POST /search", "GET /find"),
        operation("GET /payments/{id}", "GET /pay?id={id}"),
        operation(None, "GET /stats", Substitute(USERS)),
        operation(None, "GET /fax", Substitute(None, 410)),
        operation(None, "GET /telex", Substitute(None, 404, "No telex.")),
    ),
)
REWRITE = VersionRewrite.of((QUERY,), "2")
VIA_2 = Route(
    V1,
    V2,
    PERSON_V2,
    parse_template("/{rest}"),
    request=Conversion((LINK,), Direction.UP),
    response=Conversion((LINK,), Direction.DOWN),
    request_rewrite=REWRITE,
    substitutes={
        (USERS.name, V1): Route(
            V1,
            V1,
            USERS,
            parse_template("/{rest}"),
            request_rewrite=VersionRewrite.of((QUERY,), "1"),
        )
    },
)
OWN = Route(V1, V1, PERSON_V1, parse_template("/{rest}"))


def decide(route: Route, asked: str, draw: float = 1.0, *fields: tuple[str, str]) -> Decision:
    method, _, target = asked.partition(" ")
    endpoint = Endpoint(
        "person",
        parse_template("/api/{rest*}"),
        None,
        Selector((QUERY,), SUPPORTED),
        {V1: route},
        (),
    )
    mark = "&" if "?" in target else "?"
    asking = head(f"/api{target}{mark}version=1", *fields, method=method)
    return plan(snapshot([endpoint]), asking, RequestContext(cutover_draw=draw))


def planned(route: Route, asked: str, draw: float = 1.0) -> Plan:
    decision = decide(route, asked, draw)
    assert isinstance(decision, Plan)
    return decision


@pytest.mark.parametrize(
    ("asked", "method", "target"),
    [
        ("POST /pay", "POST", "/payments?version=2"),
        ("GET /pay?id=a%2Fb&x=1", "GET", "/payments/a%2Fb?x=1&version=2"),
        ("GET /other", "GET", "/other?version=2"),
    ],
)
def test_a_request_goes_to_the_path_and_method_of_the_operation(
    asked: str, method: str, target: str
) -> None:
    found = planned(VIA_2, asked)
    assert (found.method(asked.split()[0]), found.target) == (method, target)
    assert found.request is not VIA_2.request
    assert found.response is not VIA_2.response


@pytest.mark.parametrize(
    ("meant", "target"), [("POST", "/payments?version=2"), ("GET", "/pay?version=2")]
)
def test_a_preflight_goes_to_the_path_of_the_operation_it_asks_about(
    meant: str, target: str
) -> None:
    found = decide(VIA_2, "OPTIONS /pay", 1.0, ("Access-Control-Request-Method", meant))
    assert isinstance(found, Plan)
    assert (found.method("OPTIONS"), found.target) == ("OPTIONS", target)


def test_a_status_is_converted_for_its_operation() -> None:
    found = planned(VIA_2, "POST /pay")
    assert found.response is not None
    assert [found.response.status("POST", each) for each in (201, 204)] == [200, 204]
    own = planned(OWN, "POST /pay")
    assert own.response is None
    assert own.method("POST") == "POST"
    assert own.request is None


@pytest.mark.parametrize(
    ("asked", "status", "detail"),
    [
        ("GET /fax", 410, "This operation is no longer offered."),
        ("GET /telex", 404, "No telex."),
        (
            "GET /pay?id=..",
            400,
            "The request does not fit this version: the path: 'id' is a dot segment,",
        ),
    ],
)
def test_a_request_without_a_counterpart_is_refused(asked: str, status: int, detail: str) -> None:
    found = decide(VIA_2, asked)
    assert isinstance(found, Refusal)
    assert found.fault.status == status
    assert found.fault.detail.startswith(detail)
    missing = found.fault.code is FaultCode.OPERATION_MISSING
    assert missing == (status != 400)


def test_an_operation_may_be_provided_by_another_service() -> None:
    found = planned(VIA_2, "GET /stats?a=1")
    assert found.route.service is USERS
    assert found.route.service_version == V1
    assert found.target == "/stats?a=1&version=1"
    assert found.version == V1


def test_a_cutover_goes_to_the_path_of_the_new_version() -> None:
    rule = VersionCutover(KEY, "2", 50.0, "request")
    route = replace(OWN, cutover=CutoverAlternative(rule, VIA_2))
    new = planned(route, "POST /pay", 0.0)
    assert (new.cutover_route, new.target) == (CutoverRoute.NEW, "/payments?version=2")
    old = planned(route, "POST /pay", 0.9)
    assert (old.cutover_route, old.target) == (CutoverRoute.OLD, "/pay?version=1")


@pytest.mark.parametrize(
    ("asked", "repeated"),
    [
        ("GET /pay?id=7", "/payments/7?version=2"),
        ("GET /find", None),  # a search, which is a POST in version 2
        ("POST /pay", None),
        ("GET /stats", "/stats?version=1"),
    ],
)
def test_a_shadow_goes_to_the_path_of_its_version(asked: str, repeated: str | None) -> None:
    route = replace(OWN, shadow=ShadowAlternative(VersionShadow(KEY), VIA_2))
    found = planned(route, asked)
    assert not isinstance(found.repeated, Refusal)
    assert (found.repeated and found.repeated.target) == repeated
    assert found.operation_path is None


@pytest.mark.parametrize(("asked", "status"), [("GET /fax", 410), ("GET /pay?id=..", 400)])
def test_a_shadow_request_without_a_counterpart_is_refused(asked: str, status: int) -> None:
    found = planned(replace(OWN, shadow=ShadowAlternative(VersionShadow(KEY), VIA_2)), asked)
    assert isinstance(found.shadow, Refusal)
    assert found.shadow.fault.status == status


def test_a_get_that_is_a_post_in_the_other_version_is_only_validated() -> None:
    rule = VersionShadow(KEY, document="v2.json")
    found = planned(replace(OWN, shadow=ShadowAlternative(rule, VIA_2)), "GET /find")
    assert isinstance(found.shadow, Plan)
    assert rule.mode(found.shadow.method("GET"), "/find") == "validate"


def test_a_shadow_may_repeat_a_get_as_an_allowed_post() -> None:
    rule = VersionShadow(KEY, methods=frozenset({"GET", "POST"}))
    found = planned(replace(OWN, shadow=ShadowAlternative(rule, VIA_2)), "GET /find")
    assert isinstance(found.shadow, Plan)
    assert found.shadow.method("GET") == "POST"


def test_operations_are_matched_with_the_service_path_of_each_version() -> None:
    route = replace(VIA_2, upstream_path=parse_template("/v{version}/{rest}"), request_rewrite=None)
    link = VersionLink(V1, V2, (), operations=(operation("GET /v{version}/b", "GET /v1/a"),))
    up, down = (Conversion((link,), each) for each in (Direction.UP, Direction.DOWN))
    route = replace(route, request=up, response=down)
    assert planned(route, "GET /a").target == "/v2/b?version=1"
    assert planned(route, "GET /c").target == "/v2/c?version=1"
    assert Version(2, "2") == V2


def asked_by(text: str, message: MessageView) -> str:
    return f"{text} {message.method} {message.path} {message.operation}"


@pytest.mark.parametrize("operations", [None, (operation("GET /payments", "GET /pay"),)])
def test_functions_that_convert_the_query_receive_the_request(
    operations: tuple[MappedOperation, ...] | None,
) -> None:
    by = call_for_parameter("by", asked_by, asked_by)
    link = replace(LINK, operations=operations, query=(by,), shows_message=True)
    route = replace(
        VIA_2,
        request=Conversion((link,), Direction.UP),
        response=Conversion((link,), Direction.DOWN),
        request_rewrite=None,
    )
    target = unquote(planned(route, "GET /pay?by=me").target)
    assert target.startswith("/pay" if operations is None else "/payments")
    assert "by=me GET /api/pay GET /api/{rest*}" in target
