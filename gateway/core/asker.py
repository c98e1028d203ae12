"""The asker: what a plan depends on beside the rules and the head of the request."""

from typing import NamedTuple

from gateway.core.orders import NO_ORDERS, Orders


class Asker(NamedTuple):
    """Who asks, when, and under which orders.

    Attributes:
        client: the name of the client; empty where nothing names it.
        now: seconds since 1970.
        orders: what is in force over and above the rules.
        chance: at least 0 and below 1, drawn anew for every request; what happens to a share of
            the requests happens to those whose chance is below it. At 1, it happens to none.
    """

    client: str = ""
    now: float = 0.0
    orders: Orders = NO_ORDERS
    chance: float = 1.0


ANYONE = Asker()
"""Nobody in particular, before any date."""
