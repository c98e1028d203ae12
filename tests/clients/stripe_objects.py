"""The objects of Stripe's API, in the forms of 2022-11-15 and of 2026-08-26.dahlia.

Each function returns an object as a service of one version shows it. `expanded` are the paths that
the request expands, relative to the object.
"""

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]

COUPON = {"id": "c1", "object": "coupon", "percent_off": 12.50, "valid": True, "metadata": {}}
STARTED, ENDED = 1790000000, 1792592000
RATE = "txr_1"


def wants(expanded: set[str], field: str) -> bool:
    """Return whether the paths expand a field or something inside it."""
    return any(path == field or path.startswith(f"{field}.") for path in expanded)


def inside(expanded: set[str], field: str) -> set[str]:
    """Return the paths that are inside a field, relative to it."""
    return {path.removeprefix(f"{field}.") for path in expanded if path.startswith(f"{field}.")}


def customer(name: str, fields: Object) -> Object:
    kept = {key: value for key, value in fields.items() if key != "expand"}
    return {"id": name, "object": "customer", "balance": 0, "livemode": False, **kept}


def promotion_code(held: Object, older: bool, expanded: set[str]) -> Object:
    found: Object = {"object": "promotion_code", "active": True, **held}
    if older:
        return {**found, "coupon": COUPON}
    coupon = COUPON if wants(expanded, "promotion.coupon") else COUPON["id"]
    return {**found, "promotion": {"type": "coupon", "coupon": coupon}}


def discount(older: bool, expanded: set[str]) -> Object:
    found: Object = {"id": "di_1", "object": "discount", "customer": "cus_1", "start": STARTED}
    if older:
        return {**found, "coupon": COUPON}
    coupon = COUPON if wants(expanded, "source.coupon") else COUPON["id"]
    return {**found, "source": {"type": "coupon", "coupon": coupon}}


def price(older: bool) -> Object:
    recurring: Object = {"interval": "month", "usage_type": "licensed"}
    found = {"id": "price_1", "object": "price", "unit_amount": 1250, "product": "prod_1"}
    if older:
        recurring["aggregate_usage"] = None
    return {**found, "unit_amount_decimal": "1250", "recurring": recurring}


def subscription(held: Mapping[str, Any], older: bool, expanded: set[str]) -> Object:
    period = {"current_period_start": STARTED, "current_period_end": ENDED}
    item = {"id": "si_1", "object": "subscription_item", "quantity": 1, "price": price(older)}
    found = {"id": held["id"], "object": "subscription", "status": held["status"]}
    found |= {"customer": "cus_1", "metadata": held["metadata"]}
    last = invoice(INVOICES["in_1"], older, inside(expanded, "latest_invoice"))
    found["latest_invoice"] = last if wants(expanded, "latest_invoice") else "in_1"
    if older:
        reduced = discount(older, set()) if held["coupon"] else None
        return {**found, **period, "items": _list([item], "items"), "discount": reduced}
    found |= {"items": _list([{**item, **period}], "items")}
    found |= {"discounts": _discounts(held, expanded), "billing_mode": {"type": held["mode"]}}
    return found


SUBSCRIPTION: Mapping[str, Any] = {
    "id": "sub_1",
    "status": "active",
    "metadata": {},
    "coupon": True,
    "mode": "classic",
}
INVOICES: Mapping[str, Object] = {
    "in_1": {"id": "in_1", "status": "paid", "subscription": "sub_1", "coupon": True},
    "in_2": {"id": "in_2", "status": "draft", "subscription": None, "coupon": False},
    "in_3": {"id": "in_3", "status": "open", "subscription": None, "coupon": False},
}


def invoice(held: Object, older: bool, expanded: set[str]) -> Object:
    named, status, paid = held["subscription"], held["status"], held["status"] == "paid"
    taxes = [_tax(older, 190, inclusive=False), _tax(older, 7, inclusive=True)] if paid else []
    found: Object = {"object": "invoice", "status": status, "total": 1447, "number": None}
    if "id" in held:  # a preview of the older version has no id
        found["id"] = held["id"]
    lines = [_line(held, older, inside(expanded, "lines.data"))]
    found["lines"] = _list(lines, "lines")
    display = {"amount_tax_display": held["display"]} if "display" in held else None
    intent, charge = ("pi_1", "ch_1") if paid else (None, None)
    if older:
        shown = named
        if named and wants(expanded, "subscription"):
            shown = subscription(SUBSCRIPTION, older, inside(expanded, "subscription"))
        reduced = discount(older, set()) if held["coupon"] else None
        found |= {"subscription": shown, "quote": None, "paid": paid, "charge": charge}
        if paid and wants(expanded, "payment_intent"):
            found["payment_intent"] = payment_intent(older)
        else:
            found["payment_intent"] = intent
        found |= {"total_tax_amounts": taxes, "tax": 197 if paid else None}
        discounts: list[Any] = ["di_1"] if held["coupon"] else []
        return {**found, "rendering_options": display, "discount": reduced, "discounts": discounts}
    details: Object = {"metadata": {}, "subscription": named}
    if wants(expanded, "parent.subscription_details.subscription"):
        path = inside(expanded, "parent.subscription_details.subscription")
        details["subscription"] = subscription(SUBSCRIPTION, older, path)
    parent = {
        "type": "subscription_details",
        "quote_details": None,
        "subscription_details": details,
    }
    found |= {"parent": parent if named else None, "total_taxes": taxes, "rendering": display}
    found["discounts"] = _discounts(held, expanded)
    if wants(expanded, "payments"):
        shown = (
            payment_intent(older)
            if wants(expanded, "payments.data.payment.payment_intent")
            else intent
        )
        payment = {"type": "payment_intent", "payment_intent": shown}
        payments = [{"id": "inpay_1", "object": "invoice_payment", "payment": payment}]
        found["payments"] = _list(payments if paid else [], "payments")
    return found


def payment_intent(older: bool) -> Object:
    found: Object = {"id": "pi_1", "object": "payment_intent", "amount": 1447, "metadata": {}}
    found["latest_charge"] = "ch_1"
    return {**found, "invoice": "in_1"} if older else found


def invoice_item(held: Object, older: bool, expanded: set[str]) -> Object:
    found: Object = {"id": held["id"], "object": "invoiceitem", "amount": 1250, "quantity": 1}
    found |= {"customer": "cus_1", "metadata": held["metadata"]}
    named = held.get("subscription")
    if older:
        amounts = {"unit_amount": 1250, "unit_amount_decimal": "1250"}
        return {**found, **amounts, "price": price(older), "subscription": named}
    details = {"subscription": named, "subscription_item": "si_1"}
    parent = {"type": "subscription_details", "subscription_details": details}
    return {**found, "pricing": _pricing(expanded), "parent": parent if named else None}


def credit_note(held: Object, older: bool) -> Object:
    found: Object = {"id": held["id"], "object": "credit_note", "invoice": "in_1", "amount": 500}
    taxes = [_tax(older, 80, inclusive=False)]
    if older:
        return {**found, "refund": held["refund"], "tax_amounts": taxes}
    refunds = [{"amount_refunded": 500, "refund": held["refund"]}] if held["refund"] else []
    return {**found, "refunds": refunds, "total_taxes": taxes}


def session(name: str, older: bool) -> Object:
    found: Object = {"id": name, "object": "checkout.session", "status": "complete"}
    shipping = {"name": "Ann", "address": {"city": "Köln"}} if name == "cs_1" else None
    if older:
        return {**found, "shipping_details": shipping}
    return {**found, "collected_information": shipping and {"shipping_details": shipping}}


def issuing_transaction(older: bool) -> Object:
    found: Object = {"id": "ipi_1", "object": "issuing.transaction", "amount": -5000}
    fuel = {"type": "diesel", "unit": "liter", "unit_cost_decimal": "1.65"}
    fuel["volume_decimal" if older else "quantity_decimal"] = "30.3"
    return {**found, "purchase_details": {"fuel": fuel, "reference": None}}


def setup_intent(held: Object, older: bool) -> Object:
    wanted = held["secure"]
    if older and wanted == "challenge":
        wanted = "challenge_only"
    options = {"card": {"request_three_d_secure": wanted}}
    return {"id": "seti_1", "object": "setup_intent", "payment_method_options": options}


def portal(older: bool) -> Object:
    features: Object = {"invoice_history": {"enabled": True}}
    if older:
        features["subscription_pause"] = {"enabled": False}
    return {"id": "bpc_1", "object": "billing_portal.configuration", "features": features}


def schedule(held: Object, older: bool) -> Object:
    phase: Object = {"start_date": STARTED, "end_date": ENDED}
    if older:
        phase["coupon"] = held["coupon"]
    else:
        coupon = held["coupon"]
        phase["discounts"] = [{"coupon": coupon, "promotion_code": None}] if coupon else []
    return {"id": "sub_sched_1", "object": "subscription_schedule", "phases": [phase]}


def _line(held: Object, older: bool, expanded: set[str]) -> Object:
    named = held["subscription"]
    found: Object = {"id": "il_1", "object": "line_item", "amount": 1250, "quantity": 1}
    found |= {"subscription": named, "description": "Zwölf"}
    prorated: Object = {"proration": not named, "proration_details": {"credited_items": None}}
    taxes = [_tax(older, 190, inclusive=False)]
    if older:
        origin = {"subscription_item": "si_1"} if named else {"invoice_item": "ii_1"}
        kind = "subscription" if named else "invoiceitem"
        amounts = {"price": price(older), "tax_amounts": taxes}
        return {**found, **prorated, **origin, **amounts, "type": kind}
    parent: Object = {"subscription_item_details": None, "invoice_item_details": None}
    parent["type"] = "subscription_item_details" if named else "invoice_item_details"
    origin = {"subscription_item": "si_1"} if named else {}
    item = None if named else "ii_1"
    parent[parent["type"]] = {**origin, **prorated, "invoice_item": item, "subscription": named}
    return {**found, "parent": parent, "pricing": _pricing(expanded), "taxes": taxes}


def _pricing(expanded: set[str]) -> Object:
    shown = price(False) if wants(expanded, "pricing.price_details.price") else "price_1"
    details = {"price": shown, "product": "prod_1"}
    return {"type": "price_details", "price_details": details, "unit_amount_decimal": "1250"}


def _tax(older: bool, amount: int, *, inclusive: bool) -> Object:
    if older:
        return {"amount": amount, "inclusive": inclusive, "tax_rate": RATE}
    behavior = "inclusive" if inclusive else "exclusive"
    details = {"type": "tax_rate_details", "tax_rate_details": {"tax_rate": RATE}}
    return {"amount": amount, "tax_behavior": behavior, **details}


def _discounts(held: Mapping[str, Any], expanded: set[str]) -> list[Any]:
    if not held["coupon"]:
        return []
    whole = wants(expanded, "discounts")
    return [discount(False, inside(expanded, "discounts")) if whole else "di_1"]


def _list(data: list[Any], name: str) -> Object:
    return {"object": "list", "data": data, "has_more": False, "url": f"/v1/{name}"}
