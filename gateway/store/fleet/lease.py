"""Lease: who judges, by rules that need no clock but the database's.

A judge renews its lease with each judgement, in the transaction of that judgement, under a lock
that one transaction has at a time. A judge that was killed or suspended renews no more; once its
lease is over, the first replica to ask becomes the judge, with the next token. Each judgement
checks in its own transaction that the lease is still its own, so that a judge that was suspended
and wakes changes nothing: its token is an old one.
"""

from typing import NamedTuple

SECONDS = 2.5
"""For how long a lease is good that is not renewed."""


class Lease(NamedTuple):
    """The lease of a judge.

    Attributes:
        start: the mark of the start of the replica that judges; empty if none ever did.
        token: the number of judges until now.
        renewed: when it was last renewed, in seconds since 1970 by the database; 0 if it was
            given up.
    """

    start: str
    token: int
    renewed: float


NO_LEASE = Lease("", 0, 0.0)


def is_free(lease: Lease, now: float) -> bool:
    """Return whether another replica may judge."""
    return not 0 <= now - lease.renewed <= SECONDS


def taken(lease: Lease, start: str, now: float) -> Lease | None:
    """Return the lease as this start has it from now on; None if another replica judges.

    A judge whose own lease is over takes it anew, with another token: what it held in memory may
    be of the time before another judge.
    """
    if is_free(lease, now):
        return Lease(start, lease.token + 1, now)
    return lease._replace(renewed=now) if lease.start == start else None
