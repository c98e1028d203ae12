"""A stand-in for Stripe's API: the coupon of a promotion code moved between its versions.

https://docs.stripe.com/changelog
"""

import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from tests.clients.stand_in import JSON, Request, Response, StandIn, route

OLDER, NEWER = "2022-11-15", "2026-08-26"
COUPON = {"id": "c1", "object": "coupon", "percent_off": 12.50, "valid": True, "metadata": {}}


class Stripe(StandIn):
    """Reads Stripe-Version; requests without it get the older version, that of the account."""

    def __init__(self) -> None:
        super().__init__()
        self.customers = {f"cus_{n}": _customer(f"cus_{n}", {"name": f"N{n}"}) for n in range(1, 6)}
        self.codes: dict[str, dict[str, Any]] = {}
        self.repeatable: dict[str, tuple[bytes, Response]] = {}

    def version(self, request: Request) -> str:
        return request.headers.get("stripe-version", OLDER)

    def answer(self, request: Request) -> Response:
        headers = {
            "Request-Id": f"req_{len(self.requests)}",
            "Stripe-Version": self.version(request),
        }
        response = self._checked(request)
        return replace(response, headers={**headers, "Content-Type": JSON, **response.headers})

    def missing(self, request: Request) -> Response:
        text = f"Unrecognized request URL ({request.method}: {request.path})."
        return _error(404, "invalid_request_error", text)

    @route("POST", "/v1/customers")
    def create_customer(self, request: Request) -> Response:
        name = f"cus_{len(self.customers) + 1}"
        self.customers[name] = _customer(name, form(request.body))
        return Response(body=self.customers[name])

    @route("GET", "/v1/customers")
    def list_customers(self, request: Request) -> Response:
        return _page(list(self.customers.values()), "/v1/customers", form_of(request.query))

    @route("GET", "/v1/customers/(cus_[0-9]+)")
    def get_customer(self, request: Request, name: str) -> Response:
        if name not in self.customers:
            return _no_such("customer", name)
        return Response(body=self.customers[name])

    @route("POST", "/v1/customers/(cus_[0-9]+)")
    def update_customer(self, request: Request, name: str) -> Response:
        self.customers[name].update(form(request.body))
        return Response(body=self.customers[name])

    @route("DELETE", "/v1/customers/(cus_[0-9]+)")
    def delete_customer(self, request: Request, name: str) -> Response:
        if self.customers.pop(name, None) is None:
            return _no_such("customer", name)
        return Response(body={"id": name, "object": "customer", "deleted": True})

    @route("POST", "/v1/promotion_codes")
    def create_code(self, request: Request) -> Response:
        new = form(request.body)
        if self.older(request):
            coupon = new.get("coupon")
        else:
            coupon = new.get("promotion", {}).get("coupon")
            if new.get("promotion", {}).get("type") != "coupon":
                return _missing("promotion[type]")
        if coupon is None:
            return _missing("coupon" if self.older(request) else "promotion[coupon]")
        if coupon != "c1":
            return _no_such("coupon", coupon)
        code: dict[str, Any] = {
            "id": f"promo_{len(self.codes) + 1}",
            "object": "promotion_code",
            "active": True,
        }
        self.codes[code["id"]] = {
            **code,
            "code": new.get("code"),
            "metadata": new.get("metadata", {}),
        }
        return Response(body=self._code(request, code["id"], _expanded(new)))

    @route("GET", "/v1/promotion_codes/(promo_[0-9]+)")
    def get_code(self, request: Request, name: str) -> Response:
        if name not in self.codes:
            return _no_such("promotion_code", name)
        return Response(body=self._code(request, name, _expanded(form_of(request.query))))

    @route("GET", "/v1/promotion_codes")
    def list_codes(self, request: Request) -> Response:
        query = form_of(request.query)
        expanded = {path.removeprefix("data.") for path in _expanded(query)}
        codes = [self._code(request, name, expanded) for name in self.codes]
        return _page(codes, "/v1/promotion_codes", query)

    @route("POST", "/v1/charges")
    def create_charge(self, request: Request) -> Response:
        source = form(request.body)["source"]
        if source == "tok_slow_down":
            return _error(429, "invalid_request_error", "Too many requests", code="rate_limit")
        if source == "tok_forbidden":
            return _error(403, "invalid_request_error", "The key lacks a permission")
        more = {"code": "card_declined", "decline_code": "generic_decline", "charge": "ch_1"}
        return _error(402, "card_error", "Your card was declined.", **more)

    @route("POST", "/v1/files")
    def create_file(self, request: Request) -> Response:
        parts = re.findall(rb'name="(\w+)"', request.body)
        return Response(
            body={"id": "file_1", "object": "file", "purpose": b",".join(parts).decode()}
        )

    def older(self, request: Request) -> bool:
        return self.version(request) == OLDER

    def _checked(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer sk_test_1":
            return _error(401, "invalid_request_error", "Invalid API Key provided")
        if self.version(request) not in (OLDER, NEWER):
            return _error(400, "invalid_request_error", "Invalid Stripe API version")
        key = request.headers.get("idempotency-key")
        if key is None or request.method != "POST":
            return super().answer(request)
        if key not in self.repeatable:
            self.repeatable[key] = (request.body, super().answer(request))
        body, response = self.repeatable[key]
        if body != request.body:
            text = "Keys for idempotent requests can only be used with the same parameters"
            return _error(400, "idempotency_error", text)
        return replace(response, headers={"Idempotency-Key": key, "Original-Request": "req_1"})

    def _code(self, request: Request, name: str, expanded: set[str]) -> dict[str, Any]:
        if self.older(request):
            return {**self.codes[name], "coupon": COUPON}
        coupon = COUPON if "promotion.coupon" in expanded else COUPON["id"]
        return {**self.codes[name], "promotion": {"type": "coupon", "coupon": coupon}}


def form(body: bytes) -> dict[str, Any]:
    """Return the fields of a form; names in brackets become objects and lists."""
    return form_of(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body)))


def form_of(fields: list[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields:
        first, *rest = re.findall(r"[^\[\]]+|(?<=\[)(?=\])", name)
        place, key = found, first
        for inner in rest:
            place = place.setdefault(key, {})
            key = inner or str(len(place))
        place[key] = value
    return found


def _expanded(fields: dict[str, Any]) -> set[str]:
    return set(fields.get("expand", {}).values())


def _customer(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    fields = {key: value for key, value in fields.items() if key != "expand"}
    return {"id": name, "object": "customer", "balance": 0, "livemode": False, **fields}


def _page(items: list[dict[str, Any]], url: str, query: dict[str, Any]) -> Response:
    names = [item["id"] for item in items]
    start = names.index(query["starting_after"]) + 1 if "starting_after" in query else 0
    shown = items[start : start + int(query.get("limit", 10))]
    more = start + len(shown) < len(items)
    return Response(body={"object": "list", "url": url, "has_more": more, "data": shown})


def _no_such(kind: str, name: str) -> Response:
    more = {"code": "resource_missing", "param": kind if kind == "coupon" else "id"}
    status = 400 if kind == "coupon" else 404
    return _error(status, "invalid_request_error", f"No such {kind}: '{name}'", **more)


def _missing(param: str) -> Response:
    more = {"code": "parameter_missing", "param": param}
    return _error(400, "invalid_request_error", f"Missing required param: {param}.", **more)


def _error(status: int, kind: str, message: str, **more: str) -> Response:
    return Response(status, {"error": {"type": kind, "message": message, **more}})
