"""A function for the one difference of Stripe's API that no declared change describes."""

from typing import Any


def with_tax(invoice: dict[str, Any]) -> dict[str, Any]:
    """Return an invoice with the sum of its taxes, which the newer version lacks."""
    taxes = invoice.get("total_taxes") or []
    return {**invoice, "tax": sum(tax["amount"] for tax in taxes) if taxes else None}


def without_tax(invoice: dict[str, Any]) -> dict[str, Any]:
    """Return an invoice without the sum of its taxes."""
    return {name: value for name, value in invoice.items() if name != "tax"}
