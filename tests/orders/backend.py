"""Version 3 of an orders service that is as strict as its OpenAPI document.

It accepts a body only if its document allows the body, so wrongly converted bodies are refused.
"""

from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml
from aiohttp import web
from aiohttp.typedefs import Handler

HERE = Path(__file__).parent


def document(version: int) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((HERE / f"v{version}.yaml").read_text())
    return loaded


def order(number: int, **more: object) -> dict[str, object]:
    extras = [{"label": "box", "price": 150}, {"label": "card", "price": 5}]
    lines = [
        {"product": {"sku": "ABC-123"}, "quantity": 2, "price": 1999, "extras": extras},
        {"product": {"sku": "XYZ-007"}, "quantity": 1, "price": 7, "gift": True},
    ]
    return {
        "id": number,
        "status": "in_transit",
        "customer": {"name": {"first": "Ada", "last": "King Lovelace"}},
        "lines": lines,
        "payment": {"total": 4160, "currency": "EUR"},
        "express": True,
        **more,
    }


class Shop:
    def __init__(self) -> None:
        self.schemas = document(3)["components"]["schemas"]
        self.orders = {number: order(number) for number in (1, 2, 3)}

    def app(self) -> web.Application:
        service = web.Application(middlewares=[refusals])
        service.router.add_get("/openapi.json", self.described)
        service.router.add_get("/orders", self.page)
        service.router.add_post("/orders", self.create)
        service.router.add_get("/orders/{id}", self.show)
        service.router.add_patch("/orders/{id}", self.change)
        return service

    async def described(self, _: web.Request) -> web.Response:
        return web.json_response(document(3))

    async def page(self, request: web.Request) -> web.Response:
        if unknown := request.query.keys() - {"limit", "from"}:
            raise RefusedError(400, "unknown_parameter", ", ".join(sorted(unknown)))
        start, limit = int(request.query.get("from", 0)), int(request.query.get("limit", 100))
        return web.json_response(list(self.orders.values())[start : start + limit])

    async def create(self, request: web.Request) -> web.Response:
        new = await self.body(request, "NewOrder")
        number = len(self.orders) + 1
        total = sum(
            line["quantity"] * line["price"] + sum(extra["price"] for extra in line["extras"])
            for line in ({"extras": [], **line} for line in new["lines"])
        )
        made = order(number, status="new", payment={"total": total, "currency": "EUR"})
        self.orders[number] = made | {
            "customer": new["customer"],
            "lines": new["lines"],
            "express": new.get("express", False),
        }
        return self.patched(number, {"remarks": new.get("remarks")}, 201)

    async def show(self, request: web.Request) -> web.Response:
        return web.json_response(self.orders[self.number(request)])

    async def change(self, request: web.Request) -> web.Response:
        number = self.number(request)
        return self.patched(number, await self.body(request, "OrderChange"))

    def patched(self, number: int, change: dict[str, Any], status: int = 200) -> web.Response:
        changed = self.orders[number] | change
        # A null removes the named field (RFC 7396).
        self.orders[number] = {key: value for key, value in changed.items() if value is not None}
        return web.json_response(self.orders[number], status=status)

    def number(self, request: web.Request) -> int:
        number = int(request.match_info["id"])
        if number not in self.orders:
            raise RefusedError(404, "no_such_order", "Nobody ordered this.")
        return number

    async def body(self, request: web.Request, name: str) -> dict[str, Any]:
        data: dict[str, Any] = await request.json()
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": self.schemas}}
        errors = [error.message for error in jsonschema_rs.iter_errors(schema, data)]
        if errors:
            raise RefusedError(400, "invalid", "; ".join(errors))
        return data


class RefusedError(Exception):
    def __init__(self, status: int, code: str, detail: str) -> None:
        self.status = status
        self.problem = {"title": "RefusedError", "code": code, "detail": detail}


@web.middleware
async def refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except RefusedError as error:
        return web.json_response(
            error.problem, status=error.status, content_type="application/problem+json"
        )
