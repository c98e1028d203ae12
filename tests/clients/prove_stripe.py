"""Old and new clients of Stripe use the version of 2022-11-15 at a service of 2026-08-26.dahlia."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.comparison import Client, Comparison, Results, compare
from tests.clients.stripe_api import NEWER, OLDER, Stripe

RULES = Path(__file__).with_name("stripe.yaml").read_text()
FIVE = Client("stripe_python.py", "stripe-5")
SIXTEEN = Client("stripe_python.py")
NODE = Client("stripe_node.mjs", "node")
# Each client with its arguments. The first clients of each language are of the older version.
CLIENTS: dict[str, tuple[Client, *tuple[str, ...]]] = {
    "stripe-python 5, its own version": (FIVE, "none"),
    "stripe-python 5": (FIVE, OLDER),
    "stripe-python 16, older version": (SIXTEEN, OLDER),
    "stripe-python 16": (SIXTEEN, NEWER),
    "stripe-node 12, its own version": (NODE, "stripe-12", "none"),
    "stripe-node 23, older version": (NODE, "stripe", OLDER),
    "stripe-node 23": (NODE, "stripe", NEWER),
}


class Change(NamedTuple):
    """A breaking change of Stripe's changelog, and the calls that see it."""

    version: str
    title: str
    calls: tuple[str, ...]


DECLARED = [
    Change("2023-08-16", "automatic payment methods are the default", ("pay", "pay by types")),
    Change("2024-04-10", "capture_method defaults to automatic_async", ("pay", "pay by hand")),
    Change("2024-04-10", "challenge_only is removed", ("secure", "secure, wrong word")),
    Change("2024-04-10", "rendering_options become rendering", ("create an invoice",)),
    Change("2024-04-10", "subscription_pause leaves the portal", ("configure the portal",)),
    Change("2024-06-20", "volume_decimal becomes quantity_decimal", ("retrieve a purchase",)),
    Change(
        "2024-09-30.acacia",
        "customer_consent_collected becomes allow_redisplay",
        ("process with consent", "process without consent"),
    ),
    Change("2025-03-31.basil", "coupon becomes discounts", ("subscribe with a coupon",)),
    Change("2025-03-31.basil", "coupon of a phase becomes discounts", ("schedule",)),
    Change(
        "2025-03-31.basil",
        "periods move to the items of a subscription",
        ("retrieve a subscription", "list subscriptions", "event about a subscription"),
    ),
    Change("2025-03-31.basil", "Subscription.discount is removed", ("update a subscription",)),
    Change(
        "2025-03-31.basil",
        "parent replaces the subscription of an invoice",
        ("retrieve an invoice, expanded", "retrieve an invoice without a subscription"),
    ),
    Change("2025-03-31.basil", "parent replaces the type of a line", ("retrieve an invoice",)),
    Change("2025-03-31.basil", "paid is removed", ("list invoices, whole page",)),
    Change("2025-03-31.basil", "payments replace payment_intent", ("search invoices",)),
    Change(
        "2025-03-31.basil",
        "pricing replaces price",
        ("create an item", "create an item by amount", "retrieve an item"),
    ),
    Change("2025-03-31.basil", "create_preview replaces the upcoming invoice", ("preview",)),
    Change("2025-03-31.basil", "taxes replace tax_amounts", ("credit", "retrieve a credit")),
    Change("2025-03-31.basil", "refunds replace refund", ("credit", "retrieve a credit")),
    Change(
        "2025-03-31.basil",
        "shipping_details move to collected_information",
        ("retrieve a session", "retrieve a session without an address", "list events"),
    ),
    Change("2025-09-30.clover", "source replaces the coupon of a discount", ("cancel",)),
    Change(
        "2025-09-30.clover",
        "promotion replaces the coupon of a code",
        ("create a code", "create a code, no coupon", "retrieve a code", "list codes"),
    ),
    Change("2025-09-30.clover", "billing_mode defaults to flexible", ("subscribe",)),
]
BY_FUNCTION = [Change("2025-03-31.basil", "Invoice.tax is removed", ("list invoices, whole page",))]
# The newer version does not have the data, and a conversion sends no requests of its own.
IMPOSSIBLE = [
    Change("2025-03-31.basil", "PaymentIntent.invoice is removed", ("retrieve a payment",)),
    Change("2025-03-31.basil", "usage records become meter events", ("record usage",)),
    Change("2025-03-31.basil", "total_count is removed", ("count",)),
]
REFUSED = {
    *("missing", "delete, missing", "idempotency error", "wrong key", "card error", "rate limit"),
    *("permission", "not expandable", "create a code, invalid", "create a code, no coupon"),
    "secure, wrong word",
}


def titles(changes: list[Change]) -> list[str]:
    return [f"{change.version} {change.title}" for change in changes]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Comparison]:
    """Run each client once: at a service of both versions, and before one of the newer version."""

    @cache
    def of_client(name: str) -> Comparison:
        services, (client, *arguments) = (Stripe(), Stripe(only=NEWER)), CLIENTS[name]
        folder = tmp_path_factory.mktemp("client")
        return compare(folder, RULES, services, client, *arguments)

    return of_client


@pytest.fixture(scope="module")
def unconverted() -> Results:
    """Return the results of an old client at a service that has only the newer version."""
    with Stripe(only=NEWER).serve() as base:
        return FIVE.run(base, OLDER)


@pytest.mark.parametrize("change", DECLARED + BY_FUNCTION, ids=titles(DECLARED + BY_FUNCTION))
def test_an_old_client_does_not_see_the_change(
    change: Change, found: Callable[[str], Comparison], unconverted: Results
) -> None:
    results = found("stripe-python 5")
    for call in change.calls:
        assert results.through[call] == results.direct[call]
    assert any(unconverted[call] != results.direct[call] for call in change.calls)


@pytest.mark.parametrize("change", IMPOSSIBLE, ids=titles(IMPOSSIBLE))
def test_no_declaration_hides_the_change(
    change: Change, found: Callable[[str], Comparison]
) -> None:
    assert set(change.calls) <= set(found("stripe-python 5").different)


@pytest.mark.parametrize("name", CLIENTS)
def test_every_call_returns_what_the_service_of_the_version_returns(
    name: str, found: Callable[[str], Comparison]
) -> None:
    results = found(name)
    older = NEWER not in CLIENTS[name]
    lost = {call for change in IMPOSSIBLE for call in change.calls if older}
    assert set(results.different) == lost & set(results.direct)
    assert {call for call in results.raised if call in REFUSED} == REFUSED & set(results.direct)


def test_a_client_of_the_newer_version_is_not_converted(found: Callable[[str], Comparison]) -> None:
    assert found("stripe-python 16").altered == set()


def test_the_service_gets_only_the_newer_version(found: Callable[[str], Comparison]) -> None:
    requests = found("stripe-python 5, its own version").requests
    assert {request.headers.get("stripe-version") for request in requests} == {NEWER}
