"""Gates: what speaks against moving clients to the new way, in words."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class GateAction(StrEnum):
    """What is done when something speaks against a cutover."""

    HOLD = "hold"
    ROLL_BACK = "roll_back"


@dataclass(frozen=True, slots=True)
class Gates:
    """How good the new way has to be.

    Attributes:
        differences: the share of compared answers that may differ; None does not look.
        errors: by how much the share of failed requests may exceed that of the old way.
        latency: how many times as long a request may take on average as the old way.
        window: how far back the evidence reaches, in seconds.
        minimum: how many answers there must be before a share of them says anything.
        then: what is done when one of them is passed.
    """

    differences: float | None = None
    errors: float | None = None
    latency: float | None = None
    window: float = 300.0
    minimum: int = 100
    then: GateAction = GateAction.ROLL_BACK


class RouteOutcomes(NamedTuple):
    """How the requests that went one way fared; `seconds` is what all of them took together."""

    requests: int = 0
    failures: int = 0
    seconds: float = 0.0


class GateEvidence(NamedTuple):
    """What was seen within the window: both ways, and the answers compared and found to differ."""

    old: RouteOutcomes = RouteOutcomes()
    new: RouteOutcomes = RouteOutcomes()
    compared: int = 0
    differing: int = 0


def objection(gates: Gates | None, evidence: GateEvidence) -> str | None:
    """Return what speaks against the new way, or None.

    A share is judged against `minimum` answers at least. So a few bad ones speak as soon as good
    ones up to the minimum could not outweigh them, and a single one out of two does not.
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
