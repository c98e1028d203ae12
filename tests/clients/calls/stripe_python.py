"""Calls the Stripe API with stripe-python: `stripe_python.py BASE_URL (none|default|VERSION)`."""

import io
import sys
from typing import Any

import stripe

from tests.clients.calls.report import report

BASE, VERSION = sys.argv[1:]
stripe.api_base = stripe.upload_api_base = BASE
stripe.api_key = "sk_test_1"
stripe.max_network_retries = 0
if VERSION != "default":  # the client's own version, such as 2026-10-28.endive
    stripe.api_version = None if VERSION == "none" else VERSION
NEWER = VERSION == "2026-08-26.dahlia"
Customer, Code, Invoice = stripe.Customer, stripe.PromotionCode, stripe.Invoice
Subscription, Intent = stripe.Subscription, stripe.PaymentIntent


def plain(found: Any) -> Any:
    return {
        "body": found.last_response.data,
        "version": found.last_response.headers["Stripe-Version"],
    }


def form(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request in the form of this version."""
    return newer if NEWER else older


def of_coupon(name: str) -> dict[str, Any]:
    return form({"coupon": name}, {"promotion": {"type": "coupon", "coupon": name}})


def create_twice(second: str) -> Any:
    first = Customer.create(name="Once", idempotency_key=f"key-{second}")
    again = Customer.create(name=second, idempotency_key=f"key-{second}")
    return [first.id == again.id, again.last_response.headers.get("Original-Request")]


def with_key(key: str) -> Any:
    return plain(Customer.retrieve("cus_1", api_key=key))


def retried() -> Any:
    stripe.max_network_retries = 1
    try:
        return plain(Customer.create(name="Busy"))
    finally:
        stripe.max_network_retries = 0


def secured(word: str) -> Any:
    options = {"card": {"request_three_d_secure": word}}
    return plain(stripe.SetupIntent.create(customer="cus_1", payment_method_options=options))


def preview() -> Any:
    if NEWER:
        return plain(Invoice.create_preview(customer="cus_1"))
    if hasattr(Invoice, "upcoming"):
        return plain(Invoice.upcoming(customer="cus_1"))
    return raw("get", "/v1/invoices/upcoming?customer=cus_1")


def use() -> Any:
    item = stripe.SubscriptionItem
    if hasattr(item, "create_usage_record"):
        return plain(item.create_usage_record("si_1", quantity=5, timestamp=1790000000))
    return raw("post", "/v1/subscription_items/si_1/usage_records", quantity=5)


def raw(method: str, path: str, **fields: Any) -> Any:
    """Make a call that the client no longer has a method for."""
    client = stripe.StripeClient("sk_test_1", base_addresses={"api": BASE}, stripe_version=VERSION)
    return client.deserialize(client.raw_request(method, path, **fields), api_mode="V1").to_dict()


def cancel() -> Any:
    name = "cancel" if hasattr(Subscription, "cancel") else "delete"
    return plain(getattr(Subscription.retrieve("sub_1"), name)())


def process(consent: bool) -> Any:
    words = {True: "always", False: "limited"}
    shown = form({"customer_consent_collected": consent}, {"allow_redisplay": words[consent]})
    reader = stripe.terminal.Reader
    return plain(reader.process_setup_intent("tmr_1", setup_intent="seti_1", **shown))


GENERAL = {
    "create": lambda: plain(
        Customer.create(
            name="Ann & Söhne = 100%",
            metadata={"a": "1", "b c": "x[y]", "empty": ""},
            address={"city": "Köln", "line1": "1+1"},
            preferred_locales=["de", "en"],
            expand=["default_source"],
        )
    ),
    "retrieve": lambda: plain(Customer.retrieve("cus_1")),
    "retrieve, expanded": lambda: plain(Customer.retrieve("cus_1", expand=["subscriptions"])),
    "update": lambda: plain(Customer.modify("cus_1", metadata={"order": "007"}, balance=-5)),
    "list": lambda: plain(Customer.list(limit=2)),
    "list in pages": lambda: [one.id for one in Customer.list(limit=2).auto_paging_iter()],
    "search": lambda: plain(Customer.search(query="name:'N3'")),
    "delete": lambda: plain(Customer.retrieve("cus_5").delete()),
    "delete, missing": lambda: plain(stripe.Customer.delete("cus_99")),
    "idempotent": lambda: create_twice("Once"),
    "idempotency error": lambda: create_twice("Other"),
    "retried": retried,
    "missing": lambda: plain(Customer.retrieve("cus_99")),
    "wrong key": lambda: with_key("sk_test_2"),
    "not expandable": lambda: plain(Customer.retrieve("cus_1", expand=["nothing"])),
    "card error": lambda: stripe.Charge.create(amount=5, currency="eur", source="tok_declined"),
    "rate limit": lambda: stripe.Charge.create(amount=5, currency="eur", source="tok_slow_down"),
    "permission": lambda: stripe.Charge.create(amount=5, currency="eur", source="tok_forbidden"),
    "upload": lambda: plain(
        stripe.File.create(file=io.BytesIO(b"\x00\xff"), purpose="dispute_evidence")
    ),
    "create a code": lambda: plain(
        Code.create(code="SAVE", metadata={"k": "v"}, **of_coupon("c1"))
    ),
    "create a code, expanded": lambda: plain(
        Code.create(code="MORE", expand=["customer"], **of_coupon("c1"))
    ),
    "create a code, invalid": lambda: plain(Code.create(code="SAVE", **of_coupon("c9"))),
    "create a code, no coupon": lambda: plain(Code.create(code="SAVE")),
    "retrieve a code": lambda: plain(Code.retrieve("promo_1")),
    "retrieve a code, expanded": lambda: plain(
        Code.retrieve("promo_1", expand=["customer", "restrictions.currency_options"])
    ),
    "list codes": lambda: plain(Code.list(limit=5, active=True)),
}
# Calls whose parameters or results differ between the versions.
CHANGED = {
    "pay": lambda: plain(Intent.create(amount=500, currency="eur")),
    "pay by types": lambda: plain(
        Intent.create(amount=500, currency="eur", payment_method_types=["card", "sepa_debit"])
    ),
    "pay automatically": lambda: plain(
        Intent.create(amount=500, currency="eur", automatic_payment_methods={"enabled": True})
    ),
    "pay by hand": lambda: plain(
        Intent.create(amount=500, currency="eur", capture_method="manual")
    ),
    "retrieve a payment": lambda: plain(Intent.retrieve("pi_1")),
    "secure": lambda: secured("challenge" if NEWER else "challenge_only"),
    "secure, another word": lambda: secured("any"),
    "secure, wrong word": lambda: secured("never"),
    "subscribe": lambda: plain(
        Subscription.create(
            customer="cus_1",
            items=[{"price": "price_1", "quantity": 2}],
            metadata={"a": "b"},
            **form({}, {"billing_mode": {"type": "classic"}}),
        )
    ),
    "subscribe with a coupon": lambda: plain(
        Subscription.create(
            customer="cus_1",
            items=[{"price": "price_1"}],
            metadata={"order": "7"},
            **form({"coupon": "c1"}, {"discounts": [{"coupon": "c1"}]}),
        )
    ),
    "update a subscription": lambda: plain(
        Subscription.modify("sub_1", **form({"coupon": "c1"}, {"discounts": [{"coupon": "c1"}]}))
    ),
    "retrieve a subscription": lambda: plain(Subscription.retrieve("sub_1")),
    "retrieve a subscription, expanded": lambda: plain(
        Subscription.retrieve("sub_1", expand=["latest_invoice"])
    ),
    "list subscriptions": lambda: plain(Subscription.list(limit=3)),
    "list subscriptions, expanded": lambda: plain(
        Subscription.list(expand=["data.latest_invoice"])
    ),
    "cancel": cancel,
    "schedule": lambda: plain(
        stripe.SubscriptionSchedule.create(
            customer="cus_1", phases=[form({"coupon": "c1"}, {"discounts": [{"coupon": "c1"}]})]
        )
    ),
    "create an invoice": lambda: plain(
        Invoice.create(
            customer="cus_1",
            **{
                form({"key": "rendering_options"}, {"key": "rendering"})["key"]: {
                    "amount_tax_display": "include_inclusive_tax"
                }
            },
        )
    ),
    "retrieve an invoice": lambda: plain(Invoice.retrieve("in_1")),
    "retrieve an invoice without a subscription": lambda: plain(Invoice.retrieve("in_3")),
    "retrieve an invoice, expanded": lambda: plain(
        Invoice.retrieve(
            "in_1",
            expand=form(
                {"expand": ["customer", "subscription"]},
                {"expand": ["customer", "parent.subscription_details.subscription"]},
            )["expand"],
        )
    ),
    "list invoices": lambda: [one.id for one in Invoice.list(limit=2).auto_paging_iter()],
    "list invoices, whole page": lambda: plain(Invoice.list(limit=2, starting_after="in_1")),
    "search invoices": lambda: plain(Invoice.search(query="status:'paid'")),
    "preview": preview,
    "create an item": lambda: plain(
        stripe.InvoiceItem.create(
            customer="cus_1",
            metadata={"a": "b"},
            **form({"price": "price_1"}, {"pricing": {"price": "price_1"}}),
        )
    ),
    "create an item by amount": lambda: plain(
        stripe.InvoiceItem.create(
            customer="cus_1", **form({"unit_amount": 1250}, {"unit_amount_decimal": "1250"})
        )
    ),
    "retrieve an item": lambda: plain(stripe.InvoiceItem.retrieve("ii_1")),
    "credit": lambda: plain(
        stripe.CreditNote.create(
            invoice="in_1",
            amount=500,
            **form({"refund": "re_1"}, {"refunds": [{"refund": "re_1"}]}),
        )
    ),
    "retrieve a credit": lambda: plain(stripe.CreditNote.retrieve("cn_1")),
    "retrieve a session": lambda: plain(stripe.checkout.Session.retrieve("cs_1")),
    "retrieve a session without an address": lambda: plain(
        stripe.checkout.Session.retrieve("cs_2")
    ),
    "retrieve a purchase": lambda: plain(stripe.issuing.Transaction.retrieve("ipi_1")),
    "process with consent": lambda: process(True),
    "process without consent": lambda: process(False),
    "configure the portal": lambda: plain(
        stripe.billing_portal.Configuration.modify(
            "bpc_1",
            features={
                "invoice_history": {"enabled": True},
                **form({"subscription_pause": {"enabled": False}}, {}),
            },
        )
    ),
    "event about a subscription": lambda: plain(stripe.Event.retrieve("evt_1")),
    "list events": lambda: plain(stripe.Event.list(limit=3)),
    "record usage": use,
    "count": lambda: plain(Customer.list(limit=1, expand=["total_count"])),
}
report({**GENERAL, **CHANGED})
