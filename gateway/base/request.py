"""The head of a request: the parts that version selection and planning read."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from gateway.base.overrides import NO_OVERRIDES, Overrides


class HeaderLookup(Protocol):
    """A look-up of header fields by case-insensitive name; it keeps the order of field lines."""

    def getall(self, key: str, default: tuple[()]) -> Sequence[str]:
        """Return the values of all field lines named `key`, or `default` if there are none."""
        ...

    def items(self) -> Iterable[tuple[str, str]]: ...


class RequestHead(NamedTuple):
    """The head of an HTTP request.

    Attributes:
        query: The raw query, with its percent-encoding as received. It is None where the request
            target has no question mark, and empty where nothing follows the question mark.
        authority: The host, and the port if the client sent one (RFC 9110, section 7.2); empty
            where the authority is unknown.
    """

    method: str
    path: str
    query: str | None
    fields: HeaderLookup
    authority: str = ""


class RequestContext(NamedTuple):
    """The client, the time, the overrides and the random numbers that a plan depends on.

    Attributes:
        client: The name of the client; empty where the client has no name.
        brownout_draw: The random number by which a brownout of a share of the requests refuses
            this one.
        cutover_draw: The random number by which a cutover of a share of the requests moves this
            one.
        shadow_draw: The random number by which a shadow of a share of the requests repeats this
            one.

    Each draw is at least 0 and below 1, and independent of the others and of other requests. A rule
    for a share of the requests applies to a request whose draw is below that share. A draw of 1
    exempts a request from every such rule.
    """

    client: str = ""
    now: float = 0.0
    overrides: Overrides = NO_OVERRIDES
    brownout_draw: float = 1.0
    cutover_draw: float = 1.0
    shadow_draw: float = 0.0


ANONYMOUS_CONTEXT = RequestContext()
"""The context of a request of an unnamed client, at a time before any configured date."""
