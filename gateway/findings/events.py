"""The events that notifications report.

They are found by comparing the state with the last check.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from math import inf

from gateway.base.notify import EventKind
from gateway.base.overrides import Overrides, VersionKey
from gateway.findings.conditions import Finding
from gateway.findings.formatting import moment_text, period_text, plural, sentence
from gateway.findings.notifications import Notification, NotifyDocument
from gateway.findings.operator import Operator
from gateway.findings.refused_rules import rules_hash
from gateway.findings.summaries import UsageSummary, VersionSummary
from gateway.rollout.cutovers import CutoverState, DecidedBy
from gateway.store.state import FailoverRank, FleetView
from gateway.usage.history import DistinctSketch, Interval, Resolution

_DAY = 86_400.0
# The number of seconds after which an unreachable store is reported. The first value is for the
# leader; a restart of the store takes less time. The second value is for other replicas, in case
# the leader is also lost.
_STALE_SECONDS, _ALONE_SECONDS = 30.0, 300.0
# The events that are not findings, each with the part of the version's view that shows it.
_STEPPED: tuple[EventKind, str] = "cutover.stepped", "#cutover"
_BEGUN: tuple[EventKind, str] = "brownout.begun", "#brownouts"
_ENDED: tuple[EventKind, str] = "brownout.ended", "#callers"


def event(
    what: Finding | tuple[EventKind, str],
    subject: str,
    dedup_key: str,
    text: str,
    key: VersionKey = ("", ""),
) -> Notification:
    """Return a notification for a finding or another event. Its link is a path of the page.

    Args:
        what: a finding, or the kind of an event and a fragment of the version's view.
        dedup_key: distinguishes events of the same kind and subject.
    """
    kind, part = (what.event or "", what.link) if isinstance(what, Finding) else what
    source = f"{kind}\n{subject}\n{dedup_key}".encode(errors="surrogatepass")
    path = f"/page/versions/{'/'.join(key)}{part}" if all(key) else "/"
    return Notification(
        f"evt_{sha256(source).hexdigest()[:32]}", kind, 0.0, subject, text, *key, path
    )


def own_events(operator: Operator, now: float) -> Iterator[Notification]:
    """Yield the events of this replica.

    The events are a refused configuration, failed tasks (at most once an hour for each task) and,
    on the leader, an unreachable store.
    """
    state, refused = operator.state, operator.reloader.refused
    if refused is not None:
        text = (
            "the edited configuration cannot be used, and the previous one stays in force (seen by"
            f" {state.replica}): {refused.summary}"
        )
        # The hash gives replicas with the same file the same event id.
        yield event(Finding.RULES_REFUSED, "the rules", rules_hash(refused.content), sentence(text))
    for name in operator.failing_tasks():
        text = (
            f"The task {name} of {state.replica} failed and was restarted; its log has the reason."
        )
        yield event(Finding.TASK_FAILS, state.replica, f"{name} {int(now // 3600)}", text)
    if not state.failover.rank:
        yield from state_stale(state.replica, state.stale_since, now, state.failover)


def state_stale(
    replica: str, since: float | None, now: float, rank: FailoverRank
) -> Iterator[Notification]:
    if since is not None and now - since >= (_ALONE_SECONDS if rank.rank else _STALE_SECONDS):
        text = (
            f"The store of the state has been unreachable since {moment_text(since)} (seen by"
            f" {replica}); requests are still served, counts are stored later, and no"
            " cutover changes."
        )
        # Without the store, replicas cannot agree on an id. They compute the same id from the term,
        # which changes with the leader, and from the day, since a term may be long.
        dedup_key = f"{rank.term} {since // _DAY:.0f}" if rank.term else f"{since // 3600:.0f}"
        yield event(Finding.STATE_STALE, "the state", dedup_key, text)


def replicas_lost(fleet: FleetView) -> Iterator[Notification]:
    for one in fleet.replicas:
        if one.presence == "lost":
            text = (
                f"The replica {one.replica} has sent no heartbeat since {moment_text(one.heard)};"
                " its counts since then are missing."
            )
            yield event(Finding.REPLICA_LOST, one.replica, f"{one.heard:.3f}", text)


def cutover_events(
    document: NotifyDocument, states: Mapping[VersionKey, CutoverState], now: float
) -> Iterator[Notification]:
    """Yield the steps, holds and rollbacks of cutovers since the last call.

    A percentage set by an operator is not an event. Neither is a cutover that starts again.
    """
    before = dict(document.cutovers)
    document.cutovers = [(key, (one.percent, one.decided_by.value)) for key, one in states.items()]
    for key, (percent, by, why, *_) in states.items():
        former, origin = before.get(key, (percent, by))
        name = _name(key)
        of = (name, f"{percent:g} {by} {int(now)}")
        if (former, origin) == (percent, by):
            continue
        if by is DecidedBy.ROLLED_BACK:
            text = f"The cutover of {name} was rolled back to 0%: {why}."
            yield event(Finding.ROLLED_BACK, *of, text, key)
        elif by is DecidedBy.HELD:
            text = f"The cutover of {name} is held at {percent:g}%: {why}."
            yield event(Finding.CUTOVER_HELD, *of, text, key)
        elif {origin, by} <= {DecidedBy.RULES, DecidedBy.HELD} and former < percent:
            text = f"The cutover of {name} went from {former:g}% to {percent:g}%."
            yield event(_STEPPED, *of, text, key)


def brownout_begins(
    document: NotifyDocument,
    versions: Mapping[VersionKey, VersionSummary],
    overrides: Overrides,
    now: float,
) -> Iterator[Notification]:
    """Yield the brownouts begun since the last call; remove ended ones from the document."""
    known = {key: one for key, one in document.brownouts if one[1] > now}
    for key, version in versions.items():
        first = next(iter(version.upcoming(now)), None)
        if key in overrides.paused or key in known or first is None or first.begins > now:
            continue
        begins = max(first.begins, 0.0)
        # If the window has no configured beginning, its length is counted from now.
        known[key] = (begins or now, min(first.ends, 1e12), first.percent)
        until = "" if first.ends == inf else f" until {moment_text(first.ends)}"
        text = (
            f"A brownout of {_name(key)} has begun; it refuses {first.percent:g}% of its"
            f" requests{until}."
        )
        yield event(_BEGUN, _name(key), f"{begins:.0f}", text, key)
    document.brownouts = [*known.items()]


def brownout_ended(
    key: VersionKey, begins: float, ends: float, minutes: Mapping[int, Interval]
) -> Notification:
    """Return the event for the end of a brownout.

    If the history by minute is long enough, the text contains the number of refused requests and
    the number of clients.
    """

    def summed(begins: float, ends: float) -> Interval:
        total = Interval(Resolution.MINUTE)
        total.callers = DistinctSketch(Resolution.DAY.callers)
        for start, interval in minutes.items():
            if begins - Resolution.MINUTE.seconds < start < ends:
                total.add(interval)
        return total

    length = ends - begins
    text = f"The brownout of {_name(key)} has ended after {period_text(length)}"
    if (
        2 * length <= Resolution.MINUTE.max_intervals * Resolution.MINUTE.seconds
    ):  # the history covers both periods
        during, before = summed(begins, ends), summed(begins - length, begins)
        callers = during.callers.count
        text += (
            f": {during.refused:,} of {during.requests:,} {plural(during.requests, 'request')} were"
            f" refused, of {callers:,} {plural(callers, 'caller')}; {before.callers.count:,} called"
            " in as long before it"
        )
    return event(_ENDED, _name(key), f"{begins:.0f}", f"{text}.", key)


def version_events(
    versions: Mapping[VersionKey, VersionSummary],
    summaries: Mapping[VersionKey, UsageSummary],
    retirable: Iterable[VersionKey],
    now: float,
) -> Iterator[Notification]:
    """Yield events for versions near their sunset and for retirable versions.

    A version with clients causes an event 30 days, 7 days and one day before its sunset. A
    retirable version causes another event if it has served a request since the previous event.
    """
    for key, version in versions.items():
        sunset = inf if version.terms is None else version.terms.sunset
        left, usage = sunset - now, summaries.get(key, UsageSummary())
        stage = next((days for days in (1, 7, 30) if 0 < left <= days * _DAY), None)
        if stage is not None and usage.served >= now - 30 * _DAY:
            text = sentence(f"{_name(key)} ends in {period_text(left)}, and {usage.calls}")
            yield event(Finding.SUNSET_NEAR, _name(key), f"{sunset:.0f} {stage}", text, key)
    for key in retirable:
        served = summaries.get(key, UsageSummary()).served
        text = f"{_name(key)} can be retired: in the last 30 days it served no request, and nothing"
        text = sentence(f"{text} else requires it")
        yield event(Finding.RETIRABLE, _name(key), f"{served:.0f}", text, key)


def _name(key: VersionKey) -> str:
    return f"version {key[1]} of {key[0]}"
