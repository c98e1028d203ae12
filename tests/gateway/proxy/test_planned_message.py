"""The message of a planned request, and of its answer."""

from dataclasses import replace

from gateway.conversion.chain import Conversion
from gateway.conversion.changes.rename import Renamed
from gateway.conversion.message.message import Message
from gateway.conversion.message.query_walk import QueryStep
from gateway.conversion.operations.operation_path import OperationPath
from gateway.conversion.parameter_change import parse_query
from gateway.conversion.version_link import Direction, VersionLink
from gateway.proxy.planned_message import planned_message
from gateway.routing.plan import Plan, plan
from gateway.versions.mechanisms.path import PathReader
from gateway.versions.version import Version
from tests.gateway.world import head, person, snapshot

LINKS = (VersionLink(Version(1), Version(2), (), query=(Renamed("b", "a"),)),)
UP, DOWN = Conversion(LINKS, Direction.UP), Conversion(LINKS, Direction.DOWN)


def planned() -> Plan:
    """Return the plan for a request of version 1."""
    found = plan(snapshot([person("/v{version}/person", PathReader())]), head("/v1/person"))
    assert isinstance(found, Plan)
    return found


def message(plan: Plan, status: int | None) -> Message:
    """Return the message of a plan."""
    fields = [(b"X-A", b"1")]
    return planned_message(plan, "GET", "/v1/person", "a=1", {"version": "1"}, fields, status)


def test_without_a_conversion() -> None:
    found = message(planned(), 200)
    assert (found.way.version_steps, found.back) == ((), ())
    assert (found.method, found.path, found.target) == ("GET", "/v1/person", planned().target)
    assert (found.operation, found.captures) == ("/v{version}/person", {"version": "1"})
    assert [(line.name, line.value) for line in found.headers] == [("X-A", "1")]
    assert found.query == parse_query("a=1")


def test_a_conversion() -> None:
    one = planned()
    route = replace(one.route, request=UP, response=DOWN)
    request, answer = (message(one._replace(route=route), status) for status in (None, 200))
    assert request.way.service == answer.way.service == parse_query("b=1")
    assert request.back == ()
    assert [(version_step.source, version_step.target) for version_step in answer.back] == [
        (Version(2), Version(1))
    ]


def test_a_passage() -> None:
    version_steps = (QueryStep(Version(1), Version(2)),)
    operation_path = OperationPath(
        "GET", "/", None, Version(2), UP, DOWN, (), lambda _: "/", None, version_steps
    )
    assert (
        message(planned()._replace(operation_path=operation_path), None).way.version_steps
        is version_steps
    )


def test_a_copy_changes_on_its_own() -> None:
    found = message(planned(), None)
    copy = found.copied()
    assert copy == found == found.given
    found.headers.clear()
    found.query.clear()
    assert copy.headers
    found.restore()
    assert (found.headers, found.query) == (copy.headers, copy.query)
