"""The context: what a plan depends on beside the rules and the head of the request."""

from typing import NamedTuple

from gateway.core.overrides import NO_OVERRIDES, Overrides


class RequestContext(NamedTuple):
    """Who asks, when, and under which overrides.

    Attributes:
        client: the name of the client; empty where nothing names it.
        now: seconds since 1970.
        overrides: what is in force over and above the rules.
        brownout_draw: decides whether a brownout of a share of the requests refuses this one.
        cutover_draw: decides which route of a cutover by requests is taken.
        shadow_draw: decides whether a shadow of a share of the requests falls on this one.

    Each draw is at least 0 and below 1, made anew and apart from the others for every request: what
    happens to a share of the requests happens to those whose draw is below it. At 1, it happens to
    none.
    """

    client: str = ""
    now: float = 0.0
    overrides: Overrides = NO_OVERRIDES
    brownout_draw: float = 1.0
    cutover_draw: float = 1.0
    shadow_draw: float = 0.0


ANONYMOUS_CONTEXT = RequestContext()
"""Nobody in particular, before any date."""
