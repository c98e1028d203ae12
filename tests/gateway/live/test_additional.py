"""Fields, parameters and operations that the older version's document lacks, over sockets."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.kit import Program, StartGateway, wait_for
from tests.gateway.live.bounds import metric
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

ORDER = """{ type: object, properties: { id: { type: integer, readOnly: true }, status: {},
  lines: { type: array, items: { type: object, properties: { sku: {} } } } } }"""
DOCUMENT = f"""
openapi: 3.1.0
paths:
  /orders:
    get:
      parameters: [ {{ name: page, in: query, schema: {{ type: integer }} }} ]
      responses:
        "200":
          content: {{ application/json: {{ schema: {{ type: array, items: {ORDER} }} }} }}
        4XX:
          content: {{ application/json: {{ schema: {{ properties: {{ error: {{}} }} }} }} }}
    post:
      requestBody:
        content:
          application/json: {{ schema: {ORDER} }}
          application/x-www-form-urlencoded: {{ schema: {ORDER} }}
      responses: {{ "201": {{ content: {{ application/json: {{ schema: {ORDER} }} }} }} }}
  /orders/{{id}}:
    patch:
      requestBody: {{ content: {{ application/merge-patch+json: {{ schema: {ORDER} }} }} }}
"""
RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints: [ {{ path: "/{{rest*}}", version: {{ in: query, name: v }} }} ]
    versions:
      "1":
        via: "2"
        schema: {document}
        errors: {{ body: {{ at: "{{pointer}}", of: "{{field}}" }} }}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        additional: {additional}
        changes: [ {{ rename: {{ field: state, to: status }} }} ]
        query: [ {{ rename: {{ field: offset, to: page }} }} ]
{more}
"""
JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "v1.yaml"
    path.write_text(DOCUMENT)
    return path


def rules(house: House, document: Path, additional: str, more: str = "") -> str:
    return RULES.format(
        port=house.service.port, document=document, additional=additional, more=more
    )


def loaded(reloaded: StartGateway, configuration: str) -> Program:
    """Reload, and wait until the document process has compiled the document."""
    program = reloaded(configuration)
    wait_for(lambda: program.log("document_loaded"))
    return program


def test_additional_parts_of_messages_are_dropped_and_counted(
    reloaded: StartGateway, house: House, document: Path
) -> None:
    program = loaded(reloaded, rules(house, document, "drop"))
    sent = {"id": 1, "state": "a", "new": 1, "lines": [{"sku": 1, "tax": 2}, {"sku": 3}]}
    house.service.answer = answer(json.dumps([sent]).encode())
    got = get(program, "/orders?v=1&limit=3&page=2")
    assert house.service.last.line == b"GET /orders?v=2&offset=2 HTTP/1.1"
    assert got.json == [{"id": 1, "lines": [{"sku": 1}, {"sku": 3}], "status": "a"}]
    series = 'gateway_unfit_values_total{api="shop",change="apis.shop.conversions[0].additional",'
    assert wait_for(
        lambda: metric(program, f'{series}message="response",result="drop",version="1"}}')
    )
    assert metric(program, f'{series}message="request",result="drop",version="1"}}') == 1
    (line,) = [one["unfit"] for one in program.log("request") if "unfit" in one]
    assert line == (
        "apis.shop.conversions[0].additional: the query parameter 'limit': unknown in version 1"
    )
    house.service.answer = answer(b'{"id":1,"x":{}}', status="201 Created")
    got = ask(program, "POST", "/orders?v=1", JSON, body=b'{"status":"a","vatId":1,"id":2}')
    assert (house.service.last.body, got.body) == (b'{"state":"a","id":2}', b'{"id":1}')
    ask(program, "POST", "/orders?v=1", FORM, body=b"status=a&vatId=1&lines[0][tax]=2")
    assert house.service.last.body == b"state=a"
    merge = "Content-Type: application/merge-patch+json"
    ask(program, "PATCH", "/orders/7?v=1", merge, body=b'{"vatId":null,"status":null}')
    assert house.service.last.body == b'{"state":null}'


def test_documented_errors_are_filtered_and_undocumented_statuses_pass(
    reloaded: StartGateway, house: House, document: Path
) -> None:
    program = loaded(reloaded, rules(house, document, "drop"))
    for status, body in (("422 Unprocessable Content", b'{"error":1}'), ("500 Error", None)):
        sent = b'{"error":1,"hint":2}'
        house.service.answer = answer(sent, status=status)
        assert get(program, "/orders?v=1").body == (body or sent)
    house.service.answer = answer(b"a,b", "Content-Type: text/csv")
    assert get(program, "/orders?v=1").body == b"a,b"


def test_operations_pass_with_drop_and_the_newest_version_is_not_filtered(
    reloaded: StartGateway, house: House, document: Path
) -> None:
    program = loaded(reloaded, rules(house, document, "drop"))
    house.service.answer = answer(b'{"new":1}')
    assert get(program, "/customers?v=1&limit=3").body == b'{"new":1}'
    assert house.service.last.line == b"GET /customers?v=2&limit=3 HTTP/1.1"
    assert get(program, "/orders?v=2&limit=3").body == b'{"new":1}'
    assert house.service.last.line == b"GET /orders?v=2&limit=3 HTTP/1.1"


def test_additional_parts_of_a_request_are_refused_in_the_format_of_the_version(
    reloaded: StartGateway, house: House, document: Path
) -> None:
    program = loaded(reloaded, rules(house, document, "{ requests: refuse, responses: drop }"))
    body = b'{"vatId":1,"lines":[{"sku":1},{"tax":2}]}'
    got = ask(program, "POST", "/orders?v=1", JSON, body=body)
    assert (got.status, got.json) == (
        400,
        {"at": "/vatId, /lines/1/tax", "of": "vatId, lines[1].tax"},
    )
    got = get(program, "/orders?v=1&limit=3&page=1&size=2")
    assert (got.status, got.json) == (400, {"of": "limit, size"})
    assert get(program, "/customers?v=1").status == 404
    got = ask(program, "DELETE", "/orders/7?v=1")
    assert (got.status, got.all("Allow")) == (405, [b"PATCH"])
    assert not house.service.asked
    house.service.answer = answer(b'[{"new":1}]')
    assert get(program, "/orders?v=1").body == b"[{}]"


def test_an_additional_field_of_a_response_is_refused(
    reloaded: StartGateway, house: House, document: Path
) -> None:
    program = loaded(reloaded, rules(house, document, "{ responses: refuse }"))
    house.service.answer = answer(b'[{"id":1},{"new":1}]')
    got = get(program, "/orders?v=1&limit=3")
    assert house.service.last.line == b"GET /orders?v=2&limit=3 HTTP/1.1"
    assert got.status == 502
    (line,) = wait_for(lambda: program.log("request"))
    assert "/1/new: unknown in version 1" in line["cause"]


def test_the_last_conversion_that_applies_decides(
    reloaded: StartGateway, house: House, document: Path
) -> None:
    more = """
      - { between: ["1", "2"], methods: [POST], additional: pass }
"""
    program = loaded(reloaded, rules(house, document, "drop", more))
    house.service.answer = answer(b'{"new":1}', status="201 Created")
    got = ask(program, "POST", "/orders?v=1", JSON, body=b'{"vatId":1}')
    assert (house.service.last.body, got.body) == (b'{"vatId":1}', b'{"new":1}')
    house.service.answer = answer(b'[{"new":1}]')
    assert get(program, "/orders?v=1&limit=2").body == b"[{}]"


def test_a_declared_operation_has_its_own_path_in_the_document(
    reloaded: StartGateway, house: House, document: Path
) -> None:
    more = """
      - between: ["1", "2"]
        operations: [ { older: "POST /orders", newer: "PUT /carts" } ]
        changes: [ { default: { field: channel, value: web } } ]
"""
    program = loaded(reloaded, rules(house, document, "drop", more))
    house.service.answer = answer(b'{"new":1,"channel":"app","id":3}', status="201 Created")
    got = ask(program, "POST", "/orders?v=1&limit=2", JSON, body=b'{"status":"a","vatId":1}')
    last: Any = house.service.last
    assert last.line == b"PUT /carts?v=2 HTTP/1.1"
    assert (last.json, got.json) == ({"state": "a", "channel": "web"}, {"id": 3})


CHAIN = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints: [ {{ path: "/v{{version}}/{{rest*}}", version: {{ in: path }} }} ]
    versions:
      "1": {{ via: "3" }}
      "2": {{ via: "3", schema: {document} }}
      "3": {{ service: s }}
    conversions:
      - {{ between: ["1", "2"], changes: [ {{ rename: {{ field: status, to: state }} }} ] }}
      - between: ["2", "3"]
        additional: {{ requests: refuse, responses: drop }}
        changes: [ {{ rename: {{ field: phase, to: status }} }} ]
"""


def test_the_document_of_a_version_in_between_filters_its_form_of_the_message(
    reloaded: StartGateway, house: House, document: Path
) -> None:
    program = loaded(reloaded, CHAIN.format(port=house.service.port, document=document))
    house.service.answer = answer(b'{"phase":"a","new":1}', status="201 Created")
    got = ask(program, "POST", "/v1/orders", JSON, body=b'{"state":"a"}')
    assert (house.service.last.body, got.body) == (b'{"phase":"a"}', b'{"state":"a"}')
    got = ask(program, "POST", "/v1/orders", JSON, body=b'{"state":"a","vatId":1}')
    assert got.problem["detail"] == (
        "The request does not fit this version: /vatId: unknown in version 2."
    )
    assert get(program, "/v1/orders?limit=1").status == 400
