"""Gates: the limits that hold a cutover or roll it back when the new route is worse."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class GateAction(StrEnum):
    """The reaction when a cutover exceeds a limit of its gates."""

    HOLD = "hold"
    ROLL_BACK = "roll_back"


@dataclass(frozen=True, slots=True)
class Gates:
    """The limits of a cutover for its new route; a limit that is None is not checked.

    Attributes:
        differences: The maximum share of compared responses that differ, from 0 to 1.
        errors: The maximum by which the share of failed requests on the new route exceeds that on
            the old route, from 0 to 1.
        latency: The maximum ratio of the mean duration of requests on the new route to that on the
            old route.
        window: The seconds back to which the evidence reaches.
        minimum: The minimum number of responses that a share or a mean is judged by.
        then: The reaction when a limit is exceeded.
    """

    differences: float | None = None
    errors: float | None = None
    latency: float | None = None
    window: float = 300.0
    minimum: int = 100
    then: GateAction = GateAction.ROLL_BACK


class RouteOutcomes(NamedTuple):
    """The outcomes of the requests on one route.

    Attributes:
        requests: The number of requests.
        failures: The number of failed requests.
        seconds: The sum of the durations of all requests, in seconds.
    """

    requests: int = 0
    failures: int = 0
    seconds: float = 0.0


class GateEvidence(NamedTuple):
    """The measurements of a cutover within the window of its gates.

    Attributes:
        old: The outcomes of the requests on the old route.
        new: The outcomes of the requests on the new route.
        compared: The number of requests whose old and new responses were compared.
        differing: The number of those whose responses differ.
    """

    old: RouteOutcomes = RouteOutcomes()
    new: RouteOutcomes = RouteOutcomes()
    compared: int = 0
    differing: int = 0


def objection(gates: Gates | None, evidence: GateEvidence) -> str | None:
    """Return the reason against the new route as a sentence, or None if no limit is exceeded.

    Of differences and of errors, a share is computed from at least `minimum` responses; missing
    ones count as good. So a limit is exceeded as soon as good responses up to the minimum could not
    bring the share back below it, while one bad response out of two does not exceed it.
    """
    if gates is None:
        return None
    return _differences(gates, evidence) or _errors(gates, evidence) or _latency(gates, evidence)


def _differences(gates: Gates, seen: GateEvidence) -> str | None:
    limit = gates.differences
    if limit is None or seen.differing <= limit * max(seen.compared, gates.minimum):
        return None
    share = _percent(seen.differing / seen.compared)
    return (
        f"differences: {seen.differing} of {seen.compared} compared answers differ ({share});"
        f" {_percent(limit)} may"
    )


def _errors(gates: Gates, seen: GateEvidence) -> str | None:
    limit, old, new = gates.errors, seen.old, seen.new
    usual = old.failures / old.requests if old.requests >= gates.minimum else 0.0
    if limit is None or new.failures <= (limit + usual) * max(new.requests, gates.minimum):
        return None
    return (
        f"errors: {new.failures} of {new.requests} requests failed the new way"
        f" ({_percent(new.failures / new.requests)}), {_percent(usual)} the old way;"
        f" {_percent(limit)} more may"
    )


def _latency(gates: Gates, seen: GateEvidence) -> str | None:
    limit, old, new = gates.latency, seen.old, seen.new
    if limit is None or min(old.requests, new.requests) < gates.minimum:
        return None
    before, after = old.seconds / old.requests, new.seconds / new.requests
    if after <= limit * before:
        return None
    return (
        f"latency: a request takes {after * 1000:.1f} ms the new way, {before * 1000:.1f} ms the"
        f" old way; {limit:g}x is allowed"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.3g}%"
