"""Shapes of published APIs over sockets: nested form fields, ids or objects, events, labels."""

import json
from typing import Any

import pytest

from tests.gateway.kit import StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints: [ {{ path: "/v{{version}}/codes", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions: [ {{ between: ["1", "2"], {conversion} }} ]
"""
JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"


def rules(house: House, conversion: str) -> str:
    return RULES.format(port=house.service.port, conversion=conversion)


def nested(*names: str) -> str:
    return (
        f"[ {{ rename: {{ field: '{names[0]}', to: coupon }} }},"
        f" {{ default: {{ field: '{names[1]}', value: coupon }} }} ]"
    )


@pytest.mark.parametrize(
    "names",
    [("promotion[coupon]", "promotion[type]"), (r"promotion\[coupon\]", r"promotion\[type\]")],
)
def test_a_nested_form_field_is_named_as_in_a_query(
    reloaded: StartGateway, house: House, names: tuple[str, str]
) -> None:
    query = nested("promotion[coupon]", "promotion[type]")
    program = reloaded(rules(house, f"on: requests, changes: {nested(*names)}, query: {query}"))
    assert ask(program, "POST", "/v1/codes", FORM, body=b"coupon=abc&x=%7e").status == 200
    made = b"promotion%5Bcoupon%5D=abc&x=%7e&promotion%5Btype%5D=coupon"
    assert house.service.last.body == made
    assert get(program, "/v1/codes?coupon=abc&x=%7e").status == 200
    assert house.service.last.line == b"GET /v2/codes?%b HTTP/1.1" % made


def test_a_form_field_that_becomes_an_object_is_refused_with_the_right_name(
    reloaded: StartGateway, house: House
) -> None:
    program = reloaded(rules(house, "changes: [ { rename: { field: a.b, to: c } } ]"))
    got = ask(program, "POST", "/v1/codes", FORM, body=b"c=1")
    assert got.refusal() == (400, "unconvertible_request")
    assert "/c: becomes an object" in got.problem["detail"]
    assert "changes name its nested field as 'a[b]'" in got.problem["detail"]


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ({"customer": "cus_1"}, {"customer": "cus_1"}),
        ({"customer": 7}, {"customer": 7}),
        ({"customer": None}, {"customer": None}),
        ({"customer": {"title": "A"}}, {"customer": {"name": "A"}}),
        ([{"customer": "cus_1"}, {}], [{"customer": "cus_1"}, {}]),
    ],
)
def test_an_id_in_place_of_an_object_passes(
    reloaded: StartGateway, house: House, newer: Any, older: Any
) -> None:
    change = "{ rename: { field: customer.title, to: customer.name } }"
    program = reloaded(rules(house, f"changes: [ {change} ]"))
    house.service.answer = answer(json.dumps(newer).encode())
    got = get(program, "/v1/codes")
    assert (got.status, got.json) == (200, older)
    for method in ("POST", "PATCH"):
        assert ask(program, method, "/v1/codes", JSON, body=got.body).status == 200
        assert house.service.last.json == newer


@pytest.mark.parametrize("media_type", ["application/json", "application/merge-patch+json"])
def test_a_patch_of_a_field_that_moves_into_a_list_sends_the_whole_element(
    reloaded: StartGateway, house: House, media_type: str
) -> None:
    changes = (
        "[ { rename: { field: metrics.value, to: cpu } },"
        " { default: { field: metrics.type, value: cpu } }, { unwrap: { field: metrics } } ]"
    )
    program = reloaded(rules(house, f"changes: {changes}"))
    field = f"Content-Type: {media_type}"
    for body, arrives in (
        ({"cpu": 70}, {"metrics": [{"value": 70, "type": "cpu"}]}),
        ({"x": 1}, {"x": 1}),
    ):
        assert ask(program, "PATCH", "/v1/codes", field, body=json.dumps(body).encode()).status
        assert house.service.last.json == arrives


@pytest.mark.parametrize("body", [{"meta": {}}, {"state": "a", "meta": {}}])
def test_an_object_that_the_sender_sent_empty_stays(
    reloaded: StartGateway, house: House, body: Any
) -> None:
    changes = (
        "[ { rename: { field: meta.state, to: was } },"
        " { spread: { field: state, into: meta.state } } ]"
    )
    program = reloaded(rules(house, f"changes: {changes}"))
    house.service.answer = answer(json.dumps(body).encode())
    assert get(program, "/v1/codes").json["meta"] == {}
    assert ask(program, "POST", "/v1/codes", JSON, body=json.dumps(body).encode()).status == 200
    assert house.service.last.json["meta"] == {}


EVENT = (
    "{ rename: { field: data.object.sum, to: data.object.amount },"
    " when: { field: type, is: [charge.paid, charge.failed] } }"
)
KIND = "{ default: { field: spec.size, value: 1 }, when: { field: kind, is_not: Status } }"
PORT = (
    "{ rename: { field: port, to: portName },"
    " when: { field: port, type: text, older: { field: portName, type: text } } }"
)
EITHER = (
    "{ rename: { field: 'data[].sum', to: 'data[].amount' }, when: { field: data, type: array } },"
    " { rename: { field: data.sum, to: data.amount }, when: { field: data, type: object } }"
)


@pytest.mark.parametrize(
    ("changes", "newer", "older"),
    [
        (
            EVENT,
            {"type": "charge.paid", "data": {"object": {"sum": 1}}},
            {"type": "charge.paid", "data": {"object": {"amount": 1}}},
        ),
        (KIND, {"kind": "Status", "code": 404}, {"kind": "Status", "code": 404}),
        (KIND, {"kind": "Pod", "spec": {"size": 1}}, {"kind": "Pod"}),
        (PORT, {"port": "http"}, {"portName": "http"}),
        (EITHER, {"data": [{"sum": 1}, {}]}, {"data": [{"amount": 1}, {}]}),
        (EITHER, {"data": {"sum": 1}}, {"data": {"amount": 1}}),
    ],
)
def test_a_condition_holds_in_requests_and_responses(
    reloaded: StartGateway, house: House, changes: str, newer: Any, older: Any
) -> None:
    program = reloaded(rules(house, f"changes: [ {changes} ]"))
    house.service.answer = answer(json.dumps(newer).encode())
    got = get(program, "/v1/codes")
    assert (got.status, got.json) == (200, older)
    assert ask(program, "POST", "/v1/codes", JSON, body=got.body).status == 200
    assert house.service.last.json == newer
