"""Request outcomes for one route of a cutover, as sums that can be added."""

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import add, attrgetter, sub
from typing import Any, NamedTuple

from gateway.base.errors import Blame, FaultCode

OUTCOMES = ("2xx", "3xx", "4xx", "401", "403", "404", "429", "5xx", "conversion", "abandoned")
"""The outcomes. Each request has exactly one. `4xx` is any 4xx status that is not listed
separately. `5xx` includes incomplete responses. `conversion` is a message that the gateway could
not convert. `abandoned` is a request whose client closed the connection."""

NO_CELL = -1
"""The cell of requests without a client name; see `VersionCutover.cell_of`."""

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
FAILED = frozenset({_PLACES["4xx"], *_NAMED.values(), _PLACES["5xx"], _PLACES["conversion"]})
"""The indexes in OUTCOMES of refused and failed requests."""
_CLASSES = [_PLACES[name] for name in ("2xx", "2xx", "2xx", "3xx", "4xx")]


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
    measured until that time. So the mean is a restricted mean (Royston and Parmar 2013, BMC Medical
    Research Methodology 13:152): unfinished requests count, and a single request cannot dominate.

    Attributes:
        overdue: The number of requests that took longer than `overdue` of the gates.
        ends: The number of ended requests for each outcome, in the order of OUTCOMES.
        seconds: The sum of the durations. Each duration counts up to `overdue` of the gates.
        squares: The sum of the squares of these durations.
    """

    requests: int = 0
    overdue: int = 0
    ends: tuple[int, ...] = (0,) * len(OUTCOMES)
    seconds: float = 0.0
    squares: float = 0.0
    writes: int = 0
    failed_writes: int = 0
    checked: int = 0
    violating: int = 0
    checked_writes: int = 0
    violating_writes: int = 0

    def plus(self, other: "RouteOutcomes") -> "RouteOutcomes":
        return self if other is NOTHING else self._combined(add, other)

    def minus(self, earlier: "RouteOutcomes") -> "RouteOutcomes":
        return self if earlier is NOTHING else self._combined(sub, earlier)

    def _combined(
        self, operate: Callable[[Any, Any], Any], other: "RouteOutcomes"
    ) -> "RouteOutcomes":
        ends = tuple(map(operate, self[2], other[2]))
        return RouteOutcomes._make(
            (*map(operate, self[:2], other[:2]), ends, *map(operate, self[3:], other[3:]))
        )

    def count(self, measure: str) -> int:
        """Return the number of requests for a key of `gates.MEASURES` or `gates.VIOLATIONS`."""
        return _COUNT[measure](self)

    def total(self, measure: str) -> int:
        """Return the total of which the measure is a share.

        For outcomes, the total is the number of ended requests. Overdue requests are counted before
        they end, and may end in a later window.
        """
        return _TOTAL[measure](self)

    @property
    def all_good(self) -> bool:
        return not (self.overdue or self.violating or any(self.ends[1:]))

    @property
    def failures(self) -> int:
        """The number of failures that the client did not cause."""
        return self.count("5xx") + self.count("conversion")


NOTHING = RouteOutcomes()


@dataclass(slots=True)
class CellTotals:
    """The outcomes of all requests, and by cell of clients; see `VersionCutover.cell_of`."""

    cells: dict[int, RouteOutcomes] = field(default_factory=dict)
    outcomes: RouteOutcomes = NOTHING

    def add_to(self, cell: int, more: RouteOutcomes) -> None:
        self.outcomes = self.outcomes.plus(more)
        known = self.cells.get(cell)
        self.cells[cell] = more if known is None else known.plus(more)


def _ends_at(*places: int) -> Callable[[RouteOutcomes], int]:
    if len(places) == 1:
        return lambda outcomes: outcomes.ends[places[0]]
    return lambda outcomes: sum(outcomes.ends[place] for place in places)


def _ended(outcomes: RouteOutcomes) -> int:
    return sum(outcomes.ends)


# For each measure: a function that returns the counted requests, and another one that returns their
# total. A single judgement looks them up thousands of times.
_COUNT: dict[str, Callable[[RouteOutcomes], int]] = {
    **{name: _ends_at(place) for name, place in _PLACES.items()},
    "4xx": _ends_at(_PLACES["4xx"], *_NAMED.values()),
    "other 4xx": _ends_at(_PLACES["4xx"]),
    "overdue": attrgetter("overdue"),
    "writes": attrgetter("failed_writes"),
    "answers": attrgetter("violating"),
    "write answers": attrgetter("violating_writes"),
}
_TOTAL: dict[str, Callable[[RouteOutcomes], int]] = {
    **dict.fromkeys(_COUNT, _ended),
    "overdue": attrgetter("requests"),
    "writes": attrgetter("writes"),
    "answers": attrgetter("checked"),
    "write answers": attrgetter("checked_writes"),
}
