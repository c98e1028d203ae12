"""Replicas of a fleet: their presence and their common clock."""

import time
from collections.abc import Iterable, Sequence
from math import inf
from operator import attrgetter
from typing import NamedTuple

import msgspec

from gateway import __version__
from gateway.base.steady_clock import SET_TOLERANCE, steady_seconds
from gateway.observe import log
from gateway.observe.failing_targets import FailingService
from gateway.store.state import (
    IN_FORCE_SECONDS,
    LAG_SECONDS,
    SILENT_SECONDS,
    DataGap,
    FleetView,
    ReplicaView,
    SetAhead,
    State,
    StateView,
    UnknownReplicaError,
)
from gateway.usage.totals import Totals

DEPUTY = "deputy"
"""The name of the document with the start of the deputy: the replica that acts if neither the
leader nor the database can be reached."""
# The maximum number of reported services with failing targets.
_FAILING = 100
# A larger difference in seconds between the machine's clock and the database's clock is logged.
_SKEW = 5.0
# Smaller changes of the difference, in seconds, are ignored, since response delays cause them.
_APART = 0.5


class ReplicaRow(NamedTuple):
    """A row of the table `replicas`: one start of a replica. See also `ReplicaView`.

    Attributes:
        sequence: the number of the last batch that this start has written.
        merged: the number of the last batch of this start that is in the sums.
        gone: the time at which the replica left, was forgotten or was replaced by its next start;
            None while the replica belongs to the fleet.
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

    def is_lost(self, now: float) -> bool:
        """Return whether the replica has stopped sending heartbeats.

        A lost replica may still serve requests without a connection to the database, even if
        another replica of the same name sends heartbeats.
        """
        # A heartbeat in the future means that the clock of the database was set back.
        return not -SILENT_SECONDS <= now - self.heard <= SILENT_SECONDS

    def is_expired(self, now: float, lost_for: float, since: float = -inf) -> bool:
        """Return whether the replica has been lost for more than `lost_for` seconds.

        Time before `since`, the start of counting, does not count: counting restarts when the clock
        of the database is set.
        """
        return self.is_lost(now) and now - max(self.heard, since) > lost_for


def row_of(state: State, start: str, started: float, applied: int = 0) -> ReplicaRow:
    membership, failing = state.membership, encode_failing(state.failing())
    reported = membership.replica, __version__, membership.rules_hash(), state.admin
    counted = 0, 0, applied, None
    return ReplicaRow(start, *reported, started, started, *counted, membership.refused(), failing)


def present(rows: Iterable[ReplicaRow]) -> list[ReplicaRow]:
    return sorted([row for row in rows if row.gone is None], key=attrgetter("replica", "started"))


def lost_replicas(rows: Iterable[ReplicaRow], now: float) -> list[ReplicaRow]:
    return [row for row in present(rows) if row.is_lost(now)]


def _heard(rows: Iterable[ReplicaRow], now: float) -> list[ReplicaRow]:
    return [row for row in present(rows) if not row.is_lost(now)]


def deputy(rows: Sequence[ReplicaRow], leader: str, now: float) -> str:
    """Return the id of the oldest start with heartbeats that is not the leader's, or ""."""
    heard = sorted(_heard(rows, now), key=lambda row: row.started)
    return next((row.start for row in heard if row.start != leader), "")


def state_view(totals: Totals, rows: Iterable[ReplicaRow], now: float) -> StateView:
    """Return the sums of a fleet, which are complete up to the earliest of the last heartbeats."""
    lost = lost_replicas(rows, now)
    until = min([now, *[row.heard for row in present(rows) if row not in lost]])
    gaps = tuple(DataGap(row.replica, row.heard) for row in lost)
    return StateView(totals, now, until - LAG_SECONDS, None, gaps)


def fleet_view(
    rows: Sequence[ReplicaRow], now: float, leader: str, revision: int, changed: float
) -> FleetView:
    """Return the replicas as shown to operators. All times are in seconds since 1970."""
    views = [
        ReplicaView(
            replica=row.replica,
            presence="lost" if row.is_lost(now) else "heard",
            leads=row.start == leader,
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
        for row in present(rows)
    ]
    return FleetView(views, warnings(rows, now, revision, changed))


def warnings(rows: Sequence[ReplicaRow], now: float, revision: int, changed: float) -> list[str]:
    here = _heard(rows, now)
    found = []
    if len(hashes := {row.rules for row in here}) > 1:
        parts = (
            f"{rules} ({', '.join(row.replica for row in here if row.rules == rules)})"
            for rules in sorted(hashes)
        )
        found.append(f"the configurations differ: {', '.join(parts)}")
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


def not_here(replica: str, fleet: FleetView, here: str) -> str:
    known = {each.replica: each for each in fleet.replicas}
    if replica in known:
        return f"{replica} can only be reached at {known[replica].admin}; this replica is {here}"
    return f"no replica is called '{replica}'; there are {', '.join(known)}"


def lost(replica: str, rows: Sequence[ReplicaRow], now: float) -> list[ReplicaRow]:
    """Return the rows of a lost replica; raises UnknownReplicaError if it sends heartbeats."""
    known = lost_replicas(rows, now)
    if found := [row for row in known if row.replica == replica]:
        return found
    if any(row.replica == replica for row in present(rows)):
        raise UnknownReplicaError(f"{replica} still sends heartbeats; stop it, and it is removed")
    names = ", ".join(row.replica for row in known) or "none"
    raise UnknownReplicaError(f"no replica is called '{replica}'; lost: {names}")


def encode_failing(services: Sequence[FailingService]) -> str:
    return msgspec.json.encode(services[:_FAILING]).decode() if services else ""


def decode_failing(encoded: str) -> list[FailingService]:
    return msgspec.json.decode(encoded, type=list[FailingService]) if encoded else []


class FleetClock:
    """The clock of the database, which all replicas use.

    The clock continues from the time in the last response of the database. Before the first
    response, it continues from the clock of this machine.

    Attributes:
        was_set: whether the clock of the database was set since the first response, so that the
            times of earlier counts are wrong.
    """

    def __init__(self) -> None:
        self._ahead = time.time() - steady_seconds()
        self._known = False
        self._skewed = False
        self._passed_on = 0.0
        self._set_ahead: SetAhead | None = None
        self.was_set = False

    def follow(self, set_ahead: SetAhead) -> None:
        """Set the function to call with the seconds by which this machine's clock is behind."""
        self._set_ahead = set_ahead
        set_ahead(self._passed_on)
        self.pass_on()

    def pass_on(self) -> None:
        ahead = self.ahead
        if self._set_ahead is not None and abs(ahead - self._passed_on) > _APART:
            self._passed_on = ahead
            self._set_ahead(ahead)

    def set(self, date: float, sent_at: float) -> float:
        """Set the clock to the date in a response; return by how many seconds it was behind."""
        former, self._ahead = self._ahead, date - (sent_at + steady_seconds()) / 2
        skew = self.ahead
        if abs(skew) > _SKEW and not self._skewed:
            log.event("clock_skewed", "warning", seconds=round(skew, 1))
        self._skewed = abs(skew) > _SKEW
        behind = self._ahead - former
        self.was_set |= self._known and abs(behind) > SET_TOLERANCE
        self._known = True
        return behind

    def differs(self, date: float) -> bool:
        """Return whether the clock of the database was set since the last response."""
        return abs(date - self.now()) > SET_TOLERANCE

    @property
    def ahead(self) -> float:
        return self.now() - time.time()

    def now(self) -> float:
        return steady_seconds() + self._ahead
