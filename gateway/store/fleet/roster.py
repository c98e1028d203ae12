"""Roster: which replicas there are, and what their absence leaves uncertain."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import inf
from typing import NamedTuple

import msgspec

from gateway.observe.failing_service import FailingService
from gateway.store.state_access import (
    IN_FORCE_SECONDS,
    SILENT_SECONDS,
    Doubt,
    FleetView,
    ReplicaView,
    UnknownReplicaError,
)

# So many services with targets that fail are handed in.
_FAILING = 100
DEPUTY = "deputy"
"""The document with the start of the replica that acts if the judge is gone with the database."""


class ReplicaPresence(StrEnum):
    """Whether a replica takes part: it is heard, or it is lost."""

    HEARD = "heard"
    LOST = "lost"


class ReplicaRow(NamedTuple):
    """One start of a replica, as the database has it; times in seconds since 1970.

    Attributes:
        start: the mark of the start.
        replica: the name of the replica.
        version: of the gateway.
        rules: the hash of the rules in force.
        admin: the address of its admin port.
        started: when it started.
        heard: its last beat.
        sequence: the number of the last batch that it handed in.
        merged: the number of the last batch that is in the sums.
        applied: the revision of the overrides that are in force there.
        gone: when it left, was forgotten, or its next start took its place; None while it takes
            part.
        refused: why the rules on disk are not in force there; empty if they are.
        failing: the services with targets that fail there, encoded.
    """

    start: str
    replica: str
    version: str
    rules: str
    admin: str
    started: float
    heard: float
    sequence: int
    merged: int
    applied: int
    gone: float | None
    refused: str = ""
    failing: str = ""


def presence(row: ReplicaRow, now: float) -> ReplicaPresence:
    """Return whether one that has not gone is heard at this time.

    Another of the same name says nothing about it: it may be cut off, and serve.
    """
    # One that was heard later than now is of before the clock of the database was set back.
    heard = abs(now - row.heard) <= SILENT_SECONDS
    return ReplicaPresence.HEARD if heard else ReplicaPresence.LOST


def present(rows: Iterable[ReplicaRow], now: float) -> list[tuple[ReplicaRow, ReplicaPresence]]:
    """Return the replicas with their presence, by name."""
    found = ((row, presence(row, now)) for row in rows if row.gone is None)
    return sorted(found, key=lambda each: (each[0].replica, each[0].started))


def deputy(rows: Sequence[ReplicaRow], judge: str, now: float) -> str:
    """Return the start of the replica that is heard for longest beside the judge; empty for none.

    Args:
        rows: all starts of replicas.
        judge: the start of the one that judges.
        now: in seconds since 1970.
    """
    heard = [row for row, of in present(rows, now) if of is ReplicaPresence.HEARD]
    others = (row for row in sorted(heard, key=lambda row: row.started) if row.start != judge)
    return next((row.start for row in others), "")


def silences(rows: Sequence[ReplicaRow], now: float) -> tuple[Doubt, ...]:
    """Return the replicas that may have counted what the sums do not have."""
    return tuple(
        Doubt(row.replica, row.heard)
        for row, found in present(rows, now)
        if found is ReplicaPresence.LOST
    )


def heard_by(rows: Iterable[ReplicaRow], now: float) -> float:
    """Return the time at which all replicas that are heard had been heard; now if none is."""
    here = (row.heard for row, found in present(rows, now) if found is ReplicaPresence.HEARD)
    return min([now, *here])


def fleet_view(
    rows: Sequence[ReplicaRow],
    now: float,
    judge: str,
    revision: int,
    changed: float,
) -> FleetView:
    """Return the replicas for operators.

    Args:
        rows: all starts of replicas.
        now: the time of the database, in seconds since 1970.
        judge: the mark of the start that judges; empty if none does.
        revision: of the overrides.
        changed: when they were changed last, in seconds since 1970.
    """
    views = [
        ReplicaView(
            replica=row.replica,
            presence=found,
            judges=row.start == judge,
            version=row.version,
            rules=row.rules,
            admin=row.admin,
            started=row.started,
            heard=row.heard,
            lag=max(now - row.heard, 0.0),
            behind=row.sequence - row.merged,
            refused=row.refused,
            failing=decode_failing(row.failing),
        )
        for row, found in present(rows, now)
    ]
    return FleetView(views, warnings(rows, now, revision, changed))


def elsewhere(replica: str, fleet: FleetView, here: str) -> str:
    """Return why a gateway cannot answer for another replica.

    Args:
        replica: the other one.
        fleet: all replicas.
        here: the replica that was asked.
    """
    known = {each.replica: each for each in fleet.replicas}
    if replica in known:
        return f"{replica} answers for itself, at {known[replica].admin}; here is {here}"
    return f"no replica is called '{replica}'; there are {', '.join(known)}"


def lost(replica: str, rows: Sequence[ReplicaRow], now: float) -> list[ReplicaRow]:
    """Return the rows of a replica that is lost.

    Raises:
        UnknownReplicaError: it is not, or there is none of that name.
    """
    known = present(rows, now)
    found = [row for row, how in known if row.replica == replica and how is ReplicaPresence.LOST]
    if found:
        return found
    if any(row.replica == replica for row, _ in known):
        raise UnknownReplicaError(f"{replica} is heard; stop it, and it leaves by itself")
    names = ", ".join(row.replica for row, how in known if how is ReplicaPresence.LOST) or "none"
    raise UnknownReplicaError(f"no replica is called '{replica}'; lost: {names}")


def encode_failing(services: Sequence[FailingService]) -> str:
    """Return services with targets that fail as a replica hands them in, as JSON; bounded."""
    return msgspec.json.encode(services[:_FAILING]).decode() if services else ""


def decode_failing(encoded: str) -> list[FailingService]:
    """Return what a replica handed in; raises DecodeError if none did."""
    return msgspec.json.decode(encoded, type=list[FailingService]) if encoded else []


def is_over(row: ReplicaRow, now: float, lost_for: float, since: float = -inf) -> bool:
    """Return whether a row is to be marked as gone: it has been lost for long enough.

    Args:
        row: of a start.
        now: in seconds since 1970.
        lost_for: for so many seconds.
        since: when counting began, which it does anew where the clock of the database is set: what
            lies between the two times has not passed.
    """
    waited = now - max(row.heard, since)
    return presence(row, now) is ReplicaPresence.LOST and waited > lost_for


def warnings(rows: Sequence[ReplicaRow], now: float, revision: int, changed: float) -> list[str]:
    """Return what is wrong with the fleet, a sentence each."""
    here = [row for row, found in present(rows, now) if found is ReplicaPresence.HEARD]
    found = []
    if len(hashes := {row.rules for row in here}) > 1:
        parts = (
            f"{rules} ({', '.join(row.replica for row in here if row.rules == rules)})"
            for rules in sorted(hashes)
        )
        found.append(f"the rules differ: {', '.join(parts)}")
    names = [row.replica for row in here]
    found += [
        f"{names.count(name)} replicas are called {name}; give each its own GATEWAY_REPLICA"
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    if len(versions := {row.version for row in here}) > 1:
        found.append(f"the versions of the gateway differ: {', '.join(sorted(versions))}")
    found += [
        f"{row.replica} has not applied the last change of the overrides"
        for row in here
        if row.applied < revision and row.heard > max(row.started, changed + IN_FORCE_SECONDS)
    ]
    return found
