"""Request outcomes for one route of a cutover, as sums that can be added."""

from collections.abc import Callable
from operator import add, sub
from typing import Any, NamedTuple

from gateway.base.errors import Blame, FaultCode

OUTCOMES = ("2xx", "3xx", "4xx", "401", "403", "404", "429", "5xx", "conversion", "abandoned")
"""The outcomes. Each request has exactly one. `4xx` is any 4xx status that is not listed
separately. `5xx` includes incomplete responses. `conversion` is a message that the gateway could
not convert. `abandoned` is a request whose client closed the connection."""

_CONVERSION = frozenset(
    {
        FaultCode.UNCONVERTIBLE_REQUEST,
        FaultCode.UNSUPPORTED_MEDIA_TYPE,
        FaultCode.CONVERSION_FAILED,
    }
)
_OF_SERVICES = frozenset(code for code in FaultCode if code.blame is Blame.UPSTREAM)
_PLACES = {name: place for place, name in enumerate(OUTCOMES)}
_NAMED = {int(name): place for name, place in _PLACES.items() if name.isdigit()}
_CLASSES = [_PLACES[name] for name in ("2xx", "2xx", "2xx", "3xx", "4xx")]


def measure_of(outcome: int) -> str | None:
    """Return the measure that counts an outcome, a key of `gates.MEASURES`; None if it is good."""
    name = OUTCOMES[outcome]
    return None if name == "2xx" else "other 4xx" if name == "4xx" else name


def outcome_of(status: int, code: str | None, *, aborted: bool) -> int:
    """Return the index in OUTCOMES of an ended request. The status is 0 without a response."""
    if code in _CONVERSION:
        return _PLACES["conversion"]
    if aborted:
        return _PLACES["abandoned" if code is None and status < 500 else "5xx"]
    # The gateway responds to a CORS preflight with 204 even if the service is unreachable.
    if status >= 500 or code in _OF_SERVICES:
        return _PLACES["5xx"]
    return _NAMED.get(status, _CLASSES[status // 100])


class RouteOutcomes(NamedTuple):
    """The outcomes of the requests on one route.

    A request is counted when it ends or becomes overdue, whichever is first. Its duration is
    measured until that time.

    Attributes:
        overdue: The number of requests that took longer than `overdue` of the gates.
        ends: The number of ended requests for each outcome, in the order of OUTCOMES.
        seconds: The sum of the durations. Each duration counts up to `overdue` of the gates.
        checked: The number of responses that were validated against the document.
    """

    requests: int = 0
    overdue: int = 0
    ends: tuple[int, ...] = (0,) * len(OUTCOMES)
    seconds: float = 0.0
    checked: int = 0
    violating: int = 0

    def plus(self, other: "RouteOutcomes") -> "RouteOutcomes":
        return self._combined(add, other)

    def minus(self, earlier: "RouteOutcomes") -> "RouteOutcomes":
        return self._combined(sub, earlier)

    def _combined(
        self, operate: Callable[[Any, Any], Any], other: "RouteOutcomes"
    ) -> "RouteOutcomes":
        ends = tuple(map(operate, self.ends, other.ends))
        return RouteOutcomes._make(
            (*map(operate, self[:2], other[:2]), ends, *map(operate, self[3:], other[3:]))
        )

    @property
    def failures(self) -> int:
        """The number of failures that the client did not cause."""
        return self.ends[_PLACES["5xx"]] + self.ends[_PLACES["conversion"]]


NOTHING = RouteOutcomes()
