"""Links to later versions, and routes to services that provide operations a version lacks."""

from pathlib import Path

import pytest

from gateway.base.errors import Fault
from gateway.base.request import RequestContext
from gateway.http.upstream.service import Service
from gateway.routing.plan import Plan, Refusal, plan
from gateway.rules.load import load
from gateway.versions.version import Version
from tests.gateway.world import head

RULES = Path(__file__).with_name("leaving.yaml").read_bytes()
SNAPSHOT = load(RULES, "leaving.yaml", {})
BEFORE, AFTER = 1_780_272_000.0, 1_830_000_000.0


def planned(target: str, method: str = "GET", now: float = BEFORE) -> Plan | Refusal:
    found = plan(SNAPSHOT, head(target, method=method), RequestContext(now=now))
    assert isinstance(found, Plan | Refusal)
    return found


@pytest.mark.parametrize(
    ("asked", "link"),
    [
        ("GET /v1/pay/find?id=7&x=1", "/v2/payments/7"),
        ("GET /v2/payments/a%2Fb", "/v3/find?payment=a%2Fb"),
        ("GET /q/payments/7?v=2", "/q/find?payment=7&v=3"),
        ("GET /q/pay/find?id=7&v=1", "/q/payments/7?v=2"),
        ("POST /v1/pay", "/v2/payments"),
        ("GET /v1/other", "/v2/other"),
        ("GET /v1/shop", "/only/7/v2"),
        ("GET /v1/old", "/v2/old"),
        # the next version lacks the operation, or cannot express its path
        ("GET /v1/pay/stats", "/v2/pay/stats"),
        ("GET /v1/pay/find?id=..&n=1", "/v2/pay/find"),
        # parameters that do not fit the query of the next version
        ("GET /v2/payments/7?n=x", "/v3/find?payment=7"),
        ("GET /v2/payments/7?a=&n=x&n=1", "/v3/find?payment=7"),
    ],
)
def test_a_successor_link_leads_to_the_same_operation(asked: str, link: str) -> None:
    method, _, target = asked.partition(" ")
    links = [value.decode() for name, value in planned(target, method).fields if name == b"Link"]
    assert links == [f'<{link}>; rel="successor-version"']


def test_the_refusal_of_a_retired_version_has_the_path_of_the_operation_in_its_successor() -> None:
    found = planned("/v1/pay/find?id=7", now=AFTER)
    assert isinstance(found, Refusal)
    assert isinstance(found.fault, Fault)
    assert found.fault.successor == {"version": "2", "path": "/v2/payments/7"}


def test_an_operation_that_a_version_lacks_gets_the_route_of_another_service() -> None:
    first, second = planned("/v1/pay/stats"), planned("/v1/payments/stats")
    assert isinstance(first, Plan)
    assert isinstance(second, Plan)
    route = first.route
    assert (route.service.name, str(route.service_version)) == ("stats", "1")
    assert (route.request, route.response, route.tag_key) == (None, None, None)
    native = planned("/v2/payments/stats")
    assert isinstance(native, Plan)
    assert native.route.tag_key is None
    assert second.route.service.name == "stats"
    assert str(second.route.service_version) == "2"
    assert second.route.tag_key is None  # the conversion changes no body


def test_links_of_such_a_service_are_mapped_to_the_endpoint() -> None:
    found = planned("/v1/pay/stats")
    assert isinstance(found, Plan)
    service: Service = SNAPSHOT.services["stats"]
    place = SNAPSHOT.links.find(service, found.endpoint, found.route, "/pay/stats")
    assert place is not None
    served, captures = place
    assert (served.endpoint, dict(captures)) == (found.endpoint, {"rest": "pay/stats"})


def test_the_public_path_of_a_service() -> None:
    endpoint, version, captures = planned("/v1/x").endpoint, Version(2, "2"), {"rest": "x"}
    assert endpoint is not None
    public = SNAPSHOT.links.public
    assert public(endpoint, version, "/a/b", captures) == "/v2/a/b"
    assert public(endpoint, version, "/gone/7", captures) == "/only/7/v2"
    assert public(endpoint, version, "nowhere", captures) is None
