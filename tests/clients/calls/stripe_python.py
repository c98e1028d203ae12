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
NEWER = VERSION == "2026-08-26"
Customer, Code = stripe.Customer, stripe.PromotionCode


def plain(found: Any) -> Any:
    return {
        "body": found.last_response.data,
        "version": found.last_response.headers["Stripe-Version"],
    }


def of_coupon(name: str) -> dict[str, Any]:
    """Return the parameters that name the coupon of a code, in the format of this version."""
    return {"promotion": {"type": "coupon", "coupon": name}} if NEWER else {"coupon": name}


def create_twice(second: str) -> Any:
    first = Customer.create(name="Once", idempotency_key=f"key-{second}")
    again = Customer.create(name=second, idempotency_key=f"key-{second}")
    return [first.id == again.id, again.last_response.headers.get("Original-Request")]


def with_key(key: str) -> Any:
    return plain(Customer.retrieve("cus_1", api_key=key))


report(
    {
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
        "delete": lambda: plain(Customer.retrieve("cus_5").delete()),
        "delete, missing": lambda: plain(stripe.Customer.delete("cus_99")),
        "idempotent": lambda: create_twice("Once"),
        "idempotency error": lambda: create_twice("Other"),
        "missing": lambda: plain(Customer.retrieve("cus_99")),
        "wrong key": lambda: with_key("sk_test_2"),
        "card error": lambda: stripe.Charge.create(amount=5, currency="eur", source="tok_declined"),
        "rate limit": lambda: stripe.Charge.create(
            amount=5, currency="eur", source="tok_slow_down"
        ),
        "permission": lambda: stripe.Charge.create(
            amount=5, currency="eur", source="tok_forbidden"
        ),
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
)
