"""Clients of versions 1 and 2 get correct responses from a service with only version 3."""

import json
from http.client import HTTPConnection
from typing import Any

import jsonschema_rs
import pytest

from tests.gateway.kit import DEADLINE
from tests.orders.backend import document
from tests.orders.conftest import Orders

FIRST = {
    "1": {
        "id": 1,
        "state": "SENT",
        "customer": "Ada King Lovelace",
        "items": [
            {
                "sku": "ABC-123",
                "count": 2,
                "price": "19.99",
                "extras": [{"label": "box", "price": "1.50"}, {"label": "card", "price": "0.05"}],
            },
            {"sku": "XYZ-007", "count": 1, "price": "0.07", "gift": True},
        ],
        "total": "41.60",
        "express": "yes",
    },
    "2": {
        "id": 1,
        "status": "sent",
        "customer": "Ada King Lovelace",
        "lines": [
            {
                "sku": "ABC-123",
                "quantity": 2,
                "price": 1999,
                "extras": [{"label": "box", "price": 150}, {"label": "card", "price": 5}],
            },
            {"sku": "XYZ-007", "quantity": 1, "price": 7, "gift": True},
        ],
        "total": 4160,
        "express": True,
    },
}
NEW = {
    "1": {
        "customer": "Grace Hopper",
        "items": [{"sku": "AAA-000", "count": 3, "price": "10.10"}],
        "express": "no",
        "remark": "ring twice",
    },
    "2": {
        "customer": "Grace Hopper",
        "lines": [{"sku": "AAA-000", "quantity": 3, "price": 1010}],
        "express": False,
        "remark": "ring twice",
    },
}
EITHER = pytest.mark.parametrize("version", ["1", "2"])


def ask(orders: Orders, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", orders.gateway.port, timeout=DEADLINE)
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def fits(version: str, name: str, body: object) -> bool:
    schemas = document(int(version))["components"]["schemas"]
    if version == "1":
        schemas = json.loads(json.dumps(schemas).replace('"nullable": true', '"x": 0'))
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    return jsonschema_rs.is_valid(schema, body)


@EITHER
def test_an_order_is_converted(orders: Orders, version: str) -> None:
    assert ask(orders, "GET", f"/v{version}/orders/1") == (200, FIRST[version])


@EITHER
@pytest.mark.parametrize(("count", "skip", "expected"), [(2, 0, [1, 2]), (1, 2, [3])])
def test_a_page_of_orders_is_converted(
    orders: Orders, version: str, count: int, skip: int, expected: list[int]
) -> None:
    names = {"1": ("page_size", "skip"), "2": ("limit", "offset")}[version]
    query = f"{names[0]}={count}&{names[1]}={skip}"
    status, page = ask(orders, "GET", f"/v{version}/orders?{query}")
    assert status == 200
    assert [one["id"] for one in page] == expected
    assert all(fits(version, "Order", one) for one in page)


@EITHER
def test_an_order_is_created_and_changed(orders: Orders, version: str) -> None:
    status, made = ask(orders, "POST", f"/v{version}/orders", NEW[version])
    assert status == 201
    assert fits(version, "Order", made)
    assert made["customer"] == "Grace Hopper"
    assert made["remark"] == "ring twice"
    assert made["total"] == {"1": "30.30", "2": 3030}[version]
    path = f"/v{version}/orders/{made['id']}"
    change = {"1": {"state": "CANCELLED", "express": "yes"}, "2": {"status": "cancelled"}}[version]
    assert ask(orders, "PATCH", path, change) == (200, {**made, **change})
    assert ask(orders, "GET", path) == (200, {**made, **change})


@EITHER
def test_an_empty_change_adds_no_fields(orders: Orders, version: str) -> None:
    _, before = ask(orders, "GET", f"/v{version}/orders/2")
    assert ask(orders, "PATCH", f"/v{version}/orders/2", {}) == (200, before)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1", {"error": {"code": "no_such_order", "message": "Nobody ordered this."}}),
        ("2", {"code": "no_such_order", "message": "Nobody ordered this."}),
        ("3", {"title": "RefusedError", "code": "no_such_order", "detail": "Nobody ordered this."}),
    ],
)
def test_errors_are_converted(orders: Orders, version: str, expected: object) -> None:
    assert ask(orders, "GET", f"/v{version}/orders/77") == (404, expected)


@EITHER
def test_a_body_that_violates_the_document_is_refused(orders: Orders, version: str) -> None:
    status, refusal = ask(orders, "POST", f"/v{version}/orders", {"customer": "x"})
    assert status == 400
    assert fits(version, "Refusal", refusal)
