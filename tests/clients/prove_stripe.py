"""stripe-python uses the older version of Stripe's API at a service of the newer one."""

from pathlib import Path

import pytest

from tests.clients.comparison import Client, compare
from tests.clients.stripe_api import NEWER, OLDER, Stripe

CURRENT = Client("stripe_python.py")
FIVE = Client("stripe_python.py", "stripe-5")

RULES = r"""
services: { stripe: { targets: ["${SERVICE}"] } }
apis:
  stripe:
    version_format: date
    default_version: 2022-11-15
    endpoints: [ { path: "/v1/{rest*}", version: { in: header, name: Stripe-Version } } ]
    versions: { 2022-11-15: { via: 2026-08-26 }, 2026-08-26: { service: stripe } }
    groups:
      code:
        - rename: { field: promotion.coupon, to: coupon }
        - default: { field: promotion.type, value: coupon }
    # A service of the newer version shows the coupon, and not its id alone, where it is expanded.
    # Clients number what they expand from 0 on.
    conversions:
      - between: [2022-11-15, 2026-08-26]
        on: responses
        statuses: [4xx]
        headers: [ { map: { field: Stripe-Version, values: { 2026-08-26: 2022-11-15 } } } ]
      - between: [2022-11-15, 2026-08-26]
        on: requests
        operations: [ POST /v1/promotion_codes ]
        changes:
          - rename: { field: 'promotion\[coupon\]', to: coupon }
          - default: { field: 'promotion\[type\]', value: coupon }
          - default: { field: 'expand\[9\]', value: promotion.coupon }
      - between: [2022-11-15, 2026-08-26]
        on: requests
        operations: [ "GET /v1/promotion_codes/{id}" ]
        query: [ { default: { field: "expand[9]", value: promotion.coupon } } ]
      - between: [2022-11-15, 2026-08-26]
        on: requests
        operations: [ GET /v1/promotion_codes ]
        query: [ { default: { field: "expand[9]", value: data.promotion.coupon } } ]
      - between: [2022-11-15, 2026-08-26]
        on: responses
        operations: [ POST /v1/promotion_codes, "GET /v1/promotion_codes/{id}" ]
        changes: [ { use: { group: code } } ]
      - between: [2022-11-15, 2026-08-26]
        on: responses
        operations: [ GET /v1/promotion_codes ]
        changes: [ { use: { group: code, at: ["data[]"] } } ]
      - between: [2022-11-15, 2026-08-26]
        on: errors
        statuses: [400]
        operations: [ POST /v1/promotion_codes ]
        changes:
          - map: { field: error.param, values: { "promotion[coupon]": coupon }, unknown: keep }
          - map:
              field: error.message
              values:
                "Missing required param: promotion[coupon].": "Missing required param: coupon."
              unknown: keep
"""


RAISED = {
    *("missing", "delete, missing", "idempotency error", "wrong key", "card error", "rate limit"),
    *("permission", "create a code, invalid", "create a code, no coupon"),
}
ALTERED = {
    "POST /v1/promotion_codes",
    "GET /v1/promotion_codes",
    "GET /v1/promotion_codes/promo_1",
}


@pytest.mark.parametrize(
    ("client", "version"),
    [(FIVE, "none"), (FIVE, OLDER), (CURRENT, OLDER), (CURRENT, NEWER)],
    ids=["5.0 without a version", "5.0", "current, older version", "current"],
)
def test_every_call_returns_what_the_service_of_the_version_returns(
    client: Client, version: str, tmp_path: Path
) -> None:
    found = compare(tmp_path, RULES, (Stripe(), Stripe()), client, version)
    assert found.different == {}
    assert found.raised == RAISED
    assert found.altered == (set() if version == NEWER else ALTERED)
    assert {request.headers.get("stripe-version") for request in found.requests} == {NEWER}


def test_a_version_with_a_name_in_its_label_is_refused(tmp_path: Path) -> None:
    # Labels such as 2026-10-28.endive are not among the supported version formats yet.
    found = compare(tmp_path, RULES, (Stripe(), Stripe()), CURRENT, "default")
    assert {result["http_status"] for result in found.through.values()} == {400}
    assert found.requests == []
