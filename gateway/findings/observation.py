"""Observation: what happened, by what is true now and what was true before. Pure but for reading.

Each replica reports its own rules and tasks; what all share is looked at by the one that judges.
"""

from collections.abc import Iterator, Mapping
from math import inf

from gateway.base.notify_rules import EventKind
from gateway.base.overrides import Overrides, VersionKey
from gateway.findings.catalog import CatalogVersion
from gateway.findings.formatting import moment_text, period_text, plural, sentence
from gateway.findings.notification import Happening, NotifyDocument
from gateway.findings.refused_rules import RefusedRules, rules_hash
from gateway.findings.standing import Standing
from gateway.lifecycle.brownout import WindowOccurrence
from gateway.rollout.cutover_state import CutoverState, DecidedBy
from gateway.store.state import FailoverRank, FleetView
from gateway.usage.history import Distinct, Interval, Resolution

_DAY = 86_400.0
# Word of a sunset comes so many days before it, the last of them that are reached.
_STAGES = (1, 7, 30)
# A store that is away for less than so many seconds, as while it starts anew, is no news. Replicas
# other than the one that judged wait longer: it may be gone with the store.
_STALE_SECONDS, _ALONE_SECONDS = 30.0, 300.0
# Who has decided before and after a step; one that was rolled back or set begins anew.
_STEPPING = frozenset({DecidedBy.RULES, DecidedBy.HELD})
# A version that was let through to within so many days has callers.
_RECENT = 30


def rules_refused(replica: str, refused: RefusedRules | None) -> Iterator[Happening]:
    """Yield that the rules on disk of a replica cannot be used; None if they can."""
    if refused is not None:
        text = sentence(
            "the edited rules cannot be used, and the former ones stay in force (seen by"
            f" {replica}): {refused.summary}"
        )
        # By the hash of their text, replicas with the same file report it once.
        mark = rules_hash(refused.content)
        yield Happening(EventKind.RULES_REFUSED, "the rules", mark, text)


def tasks_failed(replica: str, names: list[str], now: float) -> Iterator[Happening]:
    """Yield which tasks of a replica failed, at most once an hour."""
    for name in names:
        text = f"The task {name} of {replica} failed and is started again; its log has the reason."
        yield Happening(EventKind.TASK_FAILED, replica, f"{name} {int(now // 3600)}", text)


def state_stale(
    replica: str, since: float | None, now: float, rank: FailoverRank
) -> Iterator[Happening]:
    """Yield that the store of the state has been out of reach for a while.

    Args:
        replica: that reports it.
        since: when it was reached last; None if it is reached.
        now: the time, in seconds since 1970 as `since` is.
        rank: that of this replica.
    """
    if since is not None and now - since >= (_ALONE_SECONDS if rank.rank else _STALE_SECONDS):
        text = (
            f"The store of the state has not been reached since {moment_text(since)} (seen by"
            f" {replica}); requests are answered all the same, counts wait, and no cutover moves."
        )
        # Replicas cannot agree while it is away. By the term, they find the same id: the next judge
        # has another one. The day tells it from what one replica alone had found in a long term.
        mark = f"{rank.term} {since // _DAY:.0f}" if rank.term else f"{since // 3600:.0f}"
        yield Happening(EventKind.STATE_STALE, "the state", mark, text)


def replicas_lost(fleet: FleetView) -> Iterator[Happening]:
    """Yield which replicas are lost."""
    for one in fleet.replicas:
        if one.presence == "lost":
            text = (
                f"The replica {one.replica} has not been heard since {moment_text(one.heard)};"
                " what it counted since then is missing."
            )
            yield Happening(EventKind.REPLICA_LOST, one.replica, f"{one.heard:.3f}", text)


def cutovers_moved(
    document: NotifyDocument, states: Mapping[VersionKey, CutoverState], now: float
) -> Iterator[Happening]:
    """Yield which cutovers moved since the document was written, and note it there.

    What an operator has set is no news, nor that a cutover begins anew: it has not stepped on.
    """
    before = dict(document.cutovers)
    document.cutovers = [
        (key, (state.percent, state.decided_by.value)) for key, state in states.items()
    ]
    for key, state in states.items():
        known = before.get(key)
        if known is None or known == (state.percent, state.decided_by.value):
            continue
        name, mark = _name(key), f"{state.percent:g} {state.decided_by} {int(now)}"
        if state.decided_by is DecidedBy.ROLLED_BACK:
            kind = EventKind.CUTOVER_ROLLED_BACK
            text = f"The cutover of {name} was rolled back to 0%: {state.why}."
        elif state.decided_by is DecidedBy.HELD:
            kind = EventKind.CUTOVER_HELD
            text = f"The cutover of {name} is held at {state.percent:g}%: {state.why}."
        elif {known[1], state.decided_by} <= _STEPPING and known[0] < state.percent:
            kind = EventKind.CUTOVER_STEPPED
            text = f"The cutover of {name} went from {known[0]:g}% to {state.percent:g}%."
        else:
            continue
        yield Happening(kind, name, mark, text, key, "#cutover")


def sunsets_near(
    versions: Mapping[VersionKey, CatalogVersion],
    standings: Mapping[VersionKey, Standing],
    now: float,
) -> Iterator[Happening]:
    """Yield which versions end soon and still have callers: 30 days, 7 days and a day before."""
    for key, version in versions.items():
        sunset = inf if version.terms is None else version.terms.sunset
        left, standing = sunset - now, standings.get(key, Standing())
        stage = next((days for days in _STAGES if 0 < left <= days * _DAY), None)
        if stage is None or standing.served < now - _RECENT * _DAY:
            continue
        text = sentence(f"{_name(key)} ends in {period_text(left)}, and {standing.calls}")
        mark = f"{sunset:.0f} {stage}"
        yield Happening(EventKind.SUNSET_NEAR, _name(key), mark, text, key, "#callers")


def versions_retirable(
    keys: list[VersionKey], standings: Mapping[VersionKey, Standing]
) -> Iterator[Happening]:
    """Yield which versions can be retired: once, until somebody is let through to them again."""
    for key in keys:
        mark = f"{standings.get(key, Standing()).served:.0f}"
        text = sentence(
            f"{_name(key)} can be retired: nobody was let through to it in the last 30 days, and"
            " nothing speaks against it"
        )
        yield Happening(EventKind.VERSION_RETIRABLE, _name(key), mark, text, key, "#retire")


def brownouts_begun(
    document: NotifyDocument,
    versions: Mapping[VersionKey, CatalogVersion],
    overrides: Overrides,
    now: float,
) -> Iterator[Happening]:
    """Yield which brownouts have begun since the document was written, and note it there."""
    known = dict(document.brownouts)
    for key, version in versions.items():
        if key in overrides.paused or key in known:
            continue
        first = next(iter(version.upcoming(now)), None)
        if first is None or first.begins > now:
            continue
        begins = max(first.begins, 0.0)
        # A brownout that the rules give no begin counts from when it was noticed.
        known[key] = (begins or now, min(first.ends, 1e12), first.percent)
        text = f"A brownout of {_name(key)} has begun; it refuses {_extent(first)}."
        yield Happening(
            EventKind.BROWNOUT_BEGUN, _name(key), f"{begins:.0f}", text, key, "#brownouts"
        )
    document.brownouts = [*known.items()]


def brownouts_over(document: NotifyDocument, now: float) -> dict[VersionKey, WindowOccurrence]:
    """Return the brownouts that ended, and forget them."""
    over = {key: WindowOccurrence(*noted) for key, noted in document.brownouts if noted[1] <= now}
    document.brownouts = [each for each in document.brownouts if each[0] not in over]
    return over


def brownout_ended(
    key: VersionKey, window: WindowOccurrence, minutes: Mapping[int, Interval]
) -> Happening:
    """Return that a brownout ended, and its effect.

    Args:
        key: the version.
        window: when it was open.
        minutes: the history of the version.
    """
    length = window.ends - window.begins
    text = f"The brownout of {_name(key)} has ended after {period_text(length)}"
    if 2 * length <= Resolution.MINUTE.most * Resolution.MINUTE.seconds:  # all of it is known
        during = _summed(minutes, window.begins, window.ends)
        former = _summed(minutes, window.begins - length, window.begins)
        text += (
            f": {during.refused:,} of"
            f" {during.requests:,} {plural(during.requests, 'request')} were refused, of"
            f" {during.callers.count:,} {plural(during.callers.count, 'caller')};"
            f" {former.callers.count:,} called in as long before it"
        )
    mark = f"{window.begins:.0f}"
    return Happening(EventKind.BROWNOUT_ENDED, _name(key), mark, f"{text}.", key, "#callers")


def _summed(minutes: Mapping[int, Interval], begins: float, ends: float) -> Interval:
    total = Interval(Resolution.MINUTE)
    total.callers = Distinct(Resolution.DAY.callers)
    for start, interval in minutes.items():
        if begins - Resolution.MINUTE.seconds < start < ends:
            total.add(interval)
    return total


def _extent(window: WindowOccurrence) -> str:
    what = f"{window.percent:g}% of its requests"
    return what if window.ends == inf else f"{what} until {moment_text(window.ends)}"


def _name(key: VersionKey) -> str:
    return f"version {key[1]} of {key[0]}"
