"""The head of a request: the parts that version selection and planning use."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from gateway.base.client_names import NOBODY, Identity
from gateway.base.errors import Fault
from gateway.base.overrides import NO_OVERRIDES, Overrides


class HeaderLookup(Protocol):
    """Header fields by case-insensitive name, in the order of their lines."""

    def getall(self, key: str, default: tuple[()]) -> Sequence[str]:
        """Return the values of all field lines named `key`, or `default` if there are none."""
        ...

    def items(self) -> Iterable[tuple[str, str]]: ...


class RequestHead(NamedTuple):
    """The head of an HTTP request.

    Attributes:
        query: The raw query, with its percent-encoding as received. It is None if the request
            target has no question mark, and empty if nothing follows the question mark.
        authority: The host, and the port if the client sent one (RFC 9110, section 7.2); empty if
            the authority is unknown.
    """

    method: str
    path: str
    query: str | None
    fields: HeaderLookup
    authority: str = ""


Admit = Callable[[str, object], tuple[Fault | None, tuple[tuple[bytes, bytes], ...]]]
"""Applies the rate limits of an API and a version; see `access.rate_limits.RateLimiter.admit`."""


class RequestContext(NamedTuple):
    """The client, the time, the overrides and the random numbers that a plan depends on.

    Attributes:
        brownout_draw: Decides whether a brownout of a percentage of requests refuses this one.
        cutover_draw: Decides whether a cutover of a percentage of requests moves this one.
        shadow_draw: Decides whether a shadow of a percentage of requests copies this one.
        admit: Applies rate limits; None if there are none, or if a plan is only explained.

    Each draw is an independent random number from 0 to below 1. A percentage applies to a request
    if the draw is below the percentage. The default draw of 1 is never below it.
    """

    client: str = ""
    now: float = 0.0
    overrides: Overrides = NO_OVERRIDES
    brownout_draw: float = 1.0
    cutover_draw: float = 1.0
    shadow_draw: float = 0.0
    identity: Identity = NOBODY
    admit: Admit | None = None


ANONYMOUS_CONTEXT = RequestContext()
"""The context of a request without a client name, at a time before any configured date."""
