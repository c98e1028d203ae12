"""The examples of operations in docs/operations.md, in both directions."""

import json
import re

import pytest
import yaml
from multidict import CIMultiDict

from gateway.base.mistakes import Mistakes
from gateway.base.request import RequestHead
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.registry import ParameterConfig
from gateway.conversion.document import PLAIN
from gateway.conversion.parameter_change import in_direction, rewrite_query
from gateway.routing.plan import Plan, plan
from gateway.routing.snapshot import Snapshot
from gateway.rules.document import read
from gateway.rules.load import load
from tests.gateway.kit import ROOT
from tests.transcript import section

PAGE = (ROOT / "docs" / "operations.md").read_text()
SECTION, QUERIES = section(PAGE, "Declare operations"), section(PAGE, "Query parameters")
CHANGES = re.findall(r"^\| `(\w+: \{.*\})` \| `(.*?)` \| `(.*?)` \|$", QUERIES, re.MULTILINE)
(WRITTEN,) = re.findall(r"```yaml\n([^`]+)```", SECTION)
ROWS = re.findall(r"^\| `([A-Z]+ .+)` \| `([A-Z]+ .+)` \|$", SECTION, re.MULTILINE)


OF_MEDIA = re.findall(r"```yaml\n([^`]+)```", PAGE.partition("### Media types\n")[2])[0]


def rules(served: str, via: str, written: str = WRITTEN) -> Snapshot:
    api = {
        "upstream_path": "/{rest}",
        "versions": {served: {"via": via}, via: {"service": "new"}},
        "conversions": read(written.encode(), "example", {}).data,
        "endpoints": [{"path": "/v{version}/{rest*}", "version": {"in": "path"}}],
    }
    services = {name: {"targets": ["http://127.0.0.1:8002"]} for name in ("new", "statistics")}
    return load(json.dumps({"services": services, "apis": {"a": api}}).encode(), "rules.yaml", {})


def asked(snapshot: Snapshot, version: str, line: str) -> Plan:
    method, _, target = line.partition(" ")
    path, mark, query = target.partition("?")
    head = RequestHead(method, f"/v{version}{path}", query if mark else None, CIMultiDict())
    planned = plan(snapshot, head)
    assert isinstance(planned, Plan)
    return planned


def test_the_examples_of_operations_are_found() -> None:
    assert len(ROWS) == SECTION.count("\n| `") > 5


@pytest.mark.parametrize(("older", "newer"), ROWS)
def test_an_operation_is_converted_as_in_the_example(older: str, newer: str) -> None:
    for source, target, given, wanted in (("1", "2", older, newer), ("2", "1", newer, older)):
        found = asked(rules(source, target), source, given)
        assert f"{found.method(given.split()[0])} {found.target}" == wanted


@pytest.mark.parametrize(
    ("field", "body", "response"),
    [
        ("Content-Type: application/strategic-merge-patch+json", {"spec": {"size": 1}}, "replicas"),
        ("Content-Type: application/json", {"spec": {"replicas": 1}}, "replicas"),
        ("Accept: application/json;as=Table;g=meta.k8s.io", {"spec": {"replicas": 1}}, "size"),
    ],
)
def test_the_media_types_of_a_request_choose_the_changes_of_the_example(
    field: str, body: object, response: str
) -> None:
    name, _, value = field.partition(": ")
    head = RequestHead("PATCH", "/v1/pods", None, CIMultiDict([(name, value)]))
    found = plan(rules("1", "2", OF_MEDIA), head)
    assert isinstance(found, Plan)
    assert found.request is not None
    assert found.response is not None
    up, down = found.request.for_request("PATCH"), found.response.for_response("PATCH", 200)
    given = {"spec": {"replicas": 1}}
    assert (given if up is None else up.convert(given, PLAIN)) == body
    assert down is not None
    assert down.convert({"spec": {"size": 1}}, PLAIN) == {"spec": {response: 1}}


def test_bodies_and_statuses_of_an_operation_are_converted() -> None:
    found = asked(rules("1", "2"), "1", "POST /pay")
    assert found.request is not None
    assert found.response is not None
    assert found.response.status("POST", 201) == 200
    body = found.request.for_request("POST")
    assert body is not None
    assert body.convert({"sum": 1}, PLAIN) == {"amount": 1}
    refund = asked(rules("1", "2"), "1", "POST /pay/7/refund").request
    assert refund is not None
    made = refund.made("POST")
    assert made is not None
    assert made.convert({}, PLAIN) == {"reason": "unknown"}
    back = asked(rules("2", "1"), "2", "POST /payments/7/refunds").request
    assert back is not None
    assert back.drops_body
    other = asked(rules("1", "2"), "1", "PUT /pay/7").request
    assert other is not None
    assert other.for_request("PUT") is None
    assert asked(rules("1", "2"), "1", "GET /pay/statistics").route.service.name == "statistics"


def test_the_examples_of_query_parameters_are_found() -> None:
    assert len(CHANGES) == QUERIES.count("\n| `") > 8


@pytest.mark.parametrize(("written", "newer", "older"), CHANGES)
def test_a_query_is_converted_as_in_the_example(written: str, newer: str, older: str) -> None:
    entry = ParameterConfig.model_validate_json(json.dumps(yaml.safe_load(f"{{ {written} }}")))
    mistakes = Mistakes()
    change = entry.compile(BuildContext(mistakes, header=False))
    assert change is not None
    assert not mistakes.found
    assert rewrite_query(newer, in_direction([change], upwards=False)) == older
    assert rewrite_query(older, in_direction([change], upwards=True)) == newer
