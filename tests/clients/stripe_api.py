"""A stand-in for Stripe's API in two versions.

https://docs.stripe.com/changelog
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from tests.clients import stripe_objects as objects
from tests.clients.stand_in import JSON, Request, Response, StandIn, route
from tests.clients.stripe_objects import INVOICES, SUBSCRIPTION, Object

OLDER, NEWER = "2022-11-15", "2026-08-26.dahlia"
# The fields that a request may expand, by the kind of object and the version.
_IN_DISCOUNT = {"discounts", "discounts.source.coupon"}
_IN_INVOICE = {
    OLDER: {"subscription", "payment_intent", "customer"},
    NEWER: {
        *("customer", "parent.subscription_details.subscription", *_IN_DISCOUNT),
        "parent.subscription_details.subscription.discounts.source.coupon",
        *("payments", "payments.data.payment.payment_intent"),
        "lines.data.pricing.price_details.price",
    },
}
EXPANDABLE = {
    "customer": {
        OLDER: {"default_source", "subscriptions", "total_count"},
        NEWER: {"default_source", "subscriptions"},
    },
    "promotion code": {
        OLDER: {"customer", "restrictions.currency_options"},
        NEWER: {"customer", "restrictions.currency_options", "promotion.coupon"},
    },
    "invoice": _IN_INVOICE,
    "subscription": {
        version: {
            *("customer", "latest_invoice", *(_IN_DISCOUNT if version == NEWER else ())),
            *(f"latest_invoice.{path}" for path in paths),
        }
        for version, paths in _IN_INVOICE.items()
    },
    "invoice item": {OLDER: {"customer"}, NEWER: {"customer", "pricing.price_details.price"}},
}


class _RefusedError(Exception):
    """Ends a request with an error."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class Stripe(StandIn):
    """Reads Stripe-Version; requests without it get the older version, that of the account.

    With `only`, the service has a single version, whatever a request names.
    """

    def __init__(self, only: str | None = None) -> None:
        super().__init__()
        self.only = only
        self.customers = {
            f"cus_{n}": objects.customer(f"cus_{n}", {"name": f"N{n}"}) for n in range(1, 6)
        }
        self.codes: dict[str, Object] = {}
        self.subscription: Object = dict(SUBSCRIPTION)
        self.invoices = {name: dict(held) for name, held in INVOICES.items()}
        self.repeatable: dict[str, tuple[bytes, Response]] = {}
        self.busy = 1  # the number of requests that fail before one succeeds

    def version(self, request: Request) -> str:
        return self.only or request.headers.get("stripe-version", OLDER)

    def older(self, request: Request) -> bool:
        return self.version(request) == OLDER

    def answer(self, request: Request) -> Response:
        headers = {
            "Request-Id": f"req_{len(self.requests)}",
            "Stripe-Version": self.version(request),
        }
        try:
            response = self._checked(request)
        except _RefusedError as error:
            response = error.response
        return replace(response, headers={**headers, "Content-Type": JSON, **response.headers})

    def missing(self, request: Request) -> Response:
        text = f"Unrecognized request URL ({request.method}: {request.path})."
        return _error(404, "invalid_request_error", text)

    @route("POST", "/v1/customers")
    def create_customer(self, request: Request) -> Response:
        new = form(request.body)
        if new.get("name") == "Busy" and self.busy:
            self.busy -= 1
            return _error(503, "api_error", "Try again")
        name = f"cus_{len(self.customers) + 1}"
        self.customers[name] = objects.customer(name, new)
        return Response(body=self.customers[name])

    @route("GET", "/v1/customers")
    def list_customers(self, request: Request) -> Response:
        expanded = self._expanded(request, "customer", in_list=True)
        return self._page(self.customers.values(), "/v1/customers", request, expanded)

    @route("GET", "/v1/customers/search")
    def search_customers(self, request: Request) -> Response:
        wanted = form_of(request.query)["query"].removeprefix("name:").strip("'\"")
        found = [one for one in self.customers.values() if one.get("name") == wanted]
        page = {"object": "search_result", "url": "/v1/customers/search", "next_page": None}
        return Response(body={**page, "has_more": False, "data": found})

    @route("GET", "/v1/customers/(cus_[0-9]+)")
    def get_customer(self, request: Request, name: str) -> Response:
        self._expanded(request, "customer")
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
        new = self._form(request, "code active metadata", older="coupon", newer="promotion")
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
        name = f"promo_{len(self.codes) + 1}"
        self.codes[name] = {
            "id": name,
            "code": new.get("code"),
            "metadata": new.get("metadata", {}),
        }
        return Response(body=self._code(request, name))

    @route("GET", "/v1/promotion_codes/(promo_[0-9]+)")
    def get_code(self, request: Request, name: str) -> Response:
        if name not in self.codes:
            return _no_such("promotion_code", name)
        return Response(body=self._code(request, name))

    @route("GET", "/v1/promotion_codes")
    def list_codes(self, request: Request) -> Response:
        codes = [self._code(request, name, in_list=True) for name in self.codes]
        return self._page(codes, "/v1/promotion_codes", request)

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

    @route("POST", "/v1/payment_intents")
    def create_payment_intent(self, request: Request) -> Response:
        names = "amount currency customer payment_method_types automatic_payment_methods"
        new = self._form(request, f"{names} capture_method metadata")
        older, automatic = self.older(request), new.get("automatic_payment_methods")
        types = list(new.get("payment_method_types", {}).values())
        chosen: Object = {"enabled": str(not (older or types)), **(automatic or {})}
        enabled = chosen["enabled"].lower() == "true"
        found = {**objects.payment_intent(older), "amount": int(new["amount"])}
        found.pop("invoice", None)
        found |= {"payment_method_types": types or (["card", "link"] if enabled else ["card"])}
        found |= {"automatic_payment_methods": {"enabled": True} if enabled else None}
        method = new.get("capture_method", "automatic" if older else "automatic_async")
        return Response(body={**found, "capture_method": method})

    @route("GET", "/v1/payment_intents/pi_1")
    def get_payment_intent(self, request: Request) -> Response:
        return Response(body=objects.payment_intent(self.older(request)))

    @route("POST", "/v1/setup_intents")
    def create_setup_intent(self, request: Request) -> Response:
        new = self._form(request, "customer payment_method_options")
        wanted = new["payment_method_options"]["card"]["request_three_d_secure"]
        forced = "challenge_only" if self.older(request) else "challenge"
        if wanted not in ("any", "automatic", forced):
            param = "payment_method_options[card][request_three_d_secure]"
            return _error(400, "invalid_request_error", "Invalid value", param=param)
        held = {"secure": wanted.replace("_only", "")}
        return Response(body=objects.setup_intent(held, self.older(request)))

    @route("POST", "/v1/subscriptions")
    def create_subscription(self, request: Request) -> Response:
        common = "customer items metadata promotion_code"
        new = self._form(request, common, older="coupon", newer="discounts billing_mode")
        mode = new.get("billing_mode", {"type": "flexible"})["type"]
        coupon = new.get("coupon") or new.get("discounts", {}).get("0", {}).get("coupon")
        self.subscription = {**SUBSCRIPTION, "coupon": bool(coupon), "metadata": new["metadata"]}
        self.subscription["mode"] = "classic" if self.older(request) else mode
        return self._subscription(request)

    @route("POST", "/v1/subscriptions/sub_1")
    def update_subscription(self, request: Request) -> Response:
        new = self._form(request, "metadata", older="coupon", newer="discounts")
        coupon = new.get("coupon") or new.get("discounts", {}).get("0", {}).get("coupon")
        self.subscription["coupon"] = bool(coupon)
        return self._subscription(request)

    @route("GET", "/v1/subscriptions/sub_1")
    def get_subscription(self, request: Request) -> Response:
        return self._subscription(request)

    @route("DELETE", "/v1/subscriptions/sub_1")
    def cancel_subscription(self, request: Request) -> Response:
        self.subscription["status"] = "canceled"
        return self._subscription(request)

    @route("GET", "/v1/subscriptions")
    def list_subscriptions(self, request: Request) -> Response:
        expanded = self._expanded(request, "subscription", in_list=True)
        found = objects.subscription(self.subscription, self.older(request), expanded)
        return self._page([found], "/v1/subscriptions", request)

    @route("POST", "/v1/subscription_items/si_1/usage_records")
    def create_usage_record(self, request: Request) -> Response:
        if not self.older(request):
            return self.missing(request)
        found = {"id": "mbur_1", "object": "usage_record", "subscription_item": "si_1"}
        return Response(body={**found, "quantity": int(form(request.body)["quantity"])})

    @route("POST", "/v1/subscription_schedules")
    def create_schedule(self, request: Request) -> Response:
        phase = self._form(request, "customer phases")["phases"]["0"]
        if self.older(request):
            coupon = phase.get("coupon")
        elif "coupon" in phase:
            return _unknown("phases[0][coupon]")
        else:
            coupon = phase.get("discounts", {}).get("0", {}).get("coupon")
        return Response(body=objects.schedule({"coupon": coupon}, self.older(request)))

    @route("POST", "/v1/invoices")
    def create_invoice(self, request: Request) -> Response:
        shape = {"older": "rendering_options", "newer": "rendering"}
        new = self._form(request, "customer metadata", **shape)
        shown: Object = new.get("rendering_options") or new["rendering"]
        self.invoices["in_2"]["display"] = shown["amount_tax_display"]
        return Response(body=self._invoice(request, "in_2"))

    @route("GET", "/v1/invoices/(in_[0-9])")
    def get_invoice(self, request: Request, name: str) -> Response:
        return Response(body=self._invoice(request, name))

    @route("GET", "/v1/invoices")
    def list_invoices(self, request: Request) -> Response:
        found = [self._invoice(request, name, in_list=True) for name in self.invoices]
        return self._page(found, "/v1/invoices", request)

    @route("GET", "/v1/invoices/search")
    def search_invoices(self, request: Request) -> Response:
        page = {"object": "search_result", "url": "/v1/invoices/search", "next_page": None}
        found = [self._invoice(request, "in_1", in_list=True)]
        return Response(body={**page, "has_more": False, "data": found})

    @route("GET", "/v1/invoices/upcoming")
    def preview_older_invoice(self, request: Request) -> Response:
        if not self.older(request):
            return _no_such("invoice", "upcoming")
        query = form_of(request.query)
        return Response(body=self._preview(request, query))

    @route("POST", "/v1/invoices/create_preview")
    def preview_invoice(self, request: Request) -> Response:
        if self.older(request):
            return self.missing(request)
        return Response(body=self._preview(request, self._form(request, "customer subscription")))

    @route("POST", "/v1/invoiceitems")
    def create_invoice_item(self, request: Request) -> Response:
        shape = {"older": "price unit_amount", "newer": "pricing"}
        new = self._form(request, "customer quantity unit_amount_decimal metadata", **shape)
        named = new.get("price") or new.get("pricing", {}).get("price")
        amount = new.get("unit_amount") or new.get("unit_amount_decimal")
        if named != "price_1" and amount != "1250":
            return _missing("price" if self.older(request) else "pricing")
        return Response(body=self._invoice_item(request, "ii_2", new.get("metadata", {})))

    @route("GET", "/v1/invoiceitems/ii_1")
    def get_invoice_item(self, request: Request) -> Response:
        return Response(body=self._invoice_item(request, "ii_1", {}))

    @route("POST", "/v1/credit_notes")
    def create_credit_note(self, request: Request) -> Response:
        new = self._form(request, "invoice amount", older="refund", newer="refunds")
        refund = new.get("refund") or new.get("refunds", {}).get("0", {}).get("refund")
        held = {"id": "cn_2", "refund": refund}
        return Response(body=objects.credit_note(held, self.older(request)))

    @route("GET", "/v1/credit_notes/cn_1")
    def get_credit_note(self, request: Request) -> Response:
        held = {"id": "cn_1", "refund": None}
        return Response(body=objects.credit_note(held, self.older(request)))

    @route("GET", "/v1/checkout/sessions/(cs_[0-9])")
    def get_session(self, request: Request, name: str) -> Response:
        return Response(body=objects.session(name, self.older(request)))

    @route("GET", "/v1/issuing/transactions/ipi_1")
    def get_issuing_transaction(self, request: Request) -> Response:
        return Response(body=objects.issuing_transaction(self.older(request)))

    @route("POST", "/v1/terminal/readers/tmr_1/process_setup_intent")
    def process_setup_intent(self, request: Request) -> Response:
        shape = {"older": "customer_consent_collected", "newer": "allow_redisplay"}
        new = self._form(request, "setup_intent", **shape)
        wanted = new.get("allow_redisplay") or new.get("customer_consent_collected")
        if str(wanted).lower() not in (
            ("true", "false") if self.older(request) else ("always", "limited")
        ):
            return _missing("customer_consent_collected")
        return Response(body={"id": "tmr_1", "object": "terminal.reader", "status": "online"})

    @route("POST", "/v1/billing_portal/configurations/bpc_1")
    def update_portal(self, request: Request) -> Response:
        features = self._form(request, "features").get("features", {})
        if "subscription_pause" in features and not self.older(request):
            return _unknown("features[subscription_pause]")
        return Response(body=objects.portal(self.older(request)))

    @route("GET", "/v1/events/evt_([0-9])")
    def get_event(self, request: Request, number: str) -> Response:
        return Response(body=self._event(request, int(number)))

    @route("GET", "/v1/events")
    def list_events(self, request: Request) -> Response:
        events = [self._event(request, number) for number in (1, 2, 3)]
        return self._page(events, "/v1/events", request)

    def _checked(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer sk_test_1":
            return _error(401, "invalid_request_error", "Invalid API Key provided")
        if self.version(request) not in (OLDER, NEWER):
            return _error(400, "invalid_request_error", "Invalid Stripe API version")
        key = request.headers.get("idempotency-key")
        if key is None or request.method != "POST":
            return super().answer(request)
        if key not in self.repeatable:
            response = super().answer(request)
            if response.status == 503:
                return response
            self.repeatable[key] = (request.body, response)
        body, response = self.repeatable[key]
        if body != request.body:
            text = "Keys for idempotent requests can only be used with the same parameters"
            return _error(400, "idempotency_error", text)
        return replace(response, headers={"Idempotency-Key": key, "Original-Request": "req_1"})

    def _form(self, request: Request, names: str, older: str = "", newer: str = "") -> Object:
        """Return the fields of a form; refuse a field that the version does not have."""
        new = form(request.body)
        own = older if self.older(request) else newer
        for name in new:
            if name not in (*names.split(), *own.split(), "expand"):
                raise _RefusedError(_unknown(name))
        return new

    def _expanded(self, request: Request, kind: str, *, in_list: bool = False) -> set[str]:
        """Return the paths to expand in an object; refuse paths that the version does not have."""
        fields = form(request.body) if request.method == "POST" else form_of(request.query)
        found = set()
        for path in fields.get("expand", {}).values():
            relative = path.removeprefix("data.") if in_list else path
            if in_list != path.startswith("data.") and path != "total_count":
                relative = ""
            if relative not in EXPANDABLE[kind][self.version(request)]:
                text = f"This property cannot be expanded ({path})."
                error = _error(400, "invalid_request_error", text, param="expand")
                raise _RefusedError(error)
            found.add(relative)
        return found

    def _page(
        self, items: Iterable[Object], url: str, request: Request, expanded: Iterable[str] = ()
    ) -> Response:
        query, items = form_of(request.query), list(items)
        names = [item["id"] for item in items]
        start = names.index(query["starting_after"]) + 1 if "starting_after" in query else 0
        shown = items[start : start + int(query.get("limit", 10))]
        more = start + len(shown) < len(items)
        page: Object = {"object": "list", "url": url, "has_more": more, "data": shown}
        if "total_count" in expanded:
            page["total_count"] = len(items)
        return Response(body=page)

    def _code(self, request: Request, name: str, *, in_list: bool = False) -> Object:
        expanded = self._expanded(request, "promotion code", in_list=in_list)
        return objects.promotion_code(self.codes[name], self.older(request), expanded)

    def _subscription(self, request: Request) -> Response:
        expanded = self._expanded(request, "subscription")
        return Response(body=objects.subscription(self.subscription, self.older(request), expanded))

    def _invoice(self, request: Request, name: str, *, in_list: bool = False) -> Object:
        expanded = self._expanded(request, "invoice", in_list=in_list)
        return objects.invoice(self.invoices[name], self.older(request), expanded)

    def _preview(self, request: Request, wanted: Object) -> Object:
        if wanted.get("customer") != "cus_1":
            raise _RefusedError(_missing("customer"))
        held = {**INVOICES["in_1"], "status": "draft", "id": "upcoming_in_1"}
        if self.older(request):
            del held["id"]
        expanded = self._expanded(request, "invoice")
        return objects.invoice(held, self.older(request), expanded)

    def _invoice_item(self, request: Request, name: str, metadata: Object) -> Object:
        expanded = self._expanded(request, "invoice item")
        held = {"id": name, "metadata": metadata, "subscription": None}
        return objects.invoice_item(held, self.older(request), expanded)

    def _event(self, request: Request, number: int) -> Object:
        older = self.older(request)
        subscription = {**SUBSCRIPTION, "coupon": False}
        shown = {
            "customer.subscription.updated": objects.subscription(subscription, older, set()),
            "checkout.session.completed": objects.session("cs_1", older),
            "credit_note.created": objects.credit_note({"id": "cn_1", "refund": "re_1"}, older),
        }
        kind, about = list(shown.items())[number - 1]
        event = {"id": f"evt_{number}", "object": "event", "type": kind}
        return {**event, "api_version": self.version(request), "data": {"object": about}}


def form(body: bytes) -> Object:
    """Return the fields of a form; names in brackets become objects and lists."""
    return form_of(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body)))


def form_of(fields: list[tuple[str, str]]) -> Object:
    found: Object = {}
    for name, value in fields:
        first, *rest = re.findall(r"[^\[\]]+|(?<=\[)(?=\])", name)
        place: Any
        place, key = found, first
        for inner in rest:
            place = place.setdefault(key, {})
            key = inner or str(len(place))
        place[key] = value
    return found


def _no_such(kind: str, name: str) -> Response:
    more = {"code": "resource_missing", "param": kind if kind == "coupon" else "id"}
    status = 400 if kind == "coupon" else 404
    return _error(status, "invalid_request_error", f"No such {kind}: '{name}'", **more)


def _missing(param: str) -> Response:
    more = {"code": "parameter_missing", "param": param}
    return _error(400, "invalid_request_error", f"Missing required param: {param}.", **more)


def _unknown(param: str) -> Response:
    more = {"code": "parameter_unknown", "param": param}
    return _error(400, "invalid_request_error", f"Received unknown parameter: {param}", **more)


def _error(status: int, kind: str, message: str, **more: str) -> Response:
    headers = {"Stripe-Should-Retry": "true"} if status == 503 else {}
    return Response(status, {"error": {"type": kind, "message": message, **more}}, headers)
