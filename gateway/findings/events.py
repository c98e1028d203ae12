"""The events of which notifications are sent, found by comparing the state with the document."""

from collections.abc import Iterator, Mapping
from math import inf

from gateway.base.notify import EventKind
from gateway.base.overrides import Overrides, VersionKey
from gateway.findings.formatting import moment_text, period_text, plural, sentence
from gateway.findings.notification import Event, NotifyDocument
from gateway.findings.refused_rules import RefusedRules, rules_hash
from gateway.findings.usage_summary import UsageSummary
from gateway.findings.version_summary import VersionSummary
from gateway.lifecycle.brownout import WindowOccurrence
from gateway.rollout.cutovers import CutoverState, DecidedBy
from gateway.store.state import FailoverRank, FleetView
from gateway.usage.history import Distinct, Interval, Resolution

_DAY = 86_400.0
# Days before a sunset.
_STAGES = (1, 7, 30)
# How long the store is unreachable before the leader reports it, which a restart of the store is
# not, and before other replicas do, as the leader may be gone with the store.
_STALE_SECONDS, _ALONE_SECONDS = 30.0, 300.0
# Who decides the percentages before and after a step.
_STEPPING = frozenset({DecidedBy.RULES, DecidedBy.HELD})
# A version has callers if a request was let through within so many days.
_RECENT = 30


def rules_refused(replica: str, refused: RefusedRules | None) -> Iterator[Event]:
    """Yield that the configuration on disk cannot be used."""
    if refused is not None:
        text = sentence(
            "the edited rules cannot be used, and the former ones stay in force (seen by"
            f" {replica}): {refused.summary}"
        )
        # Replicas with the same file find the same event.
        dedup_key = rules_hash(refused.content)
        yield Event("rules.refused", "the rules", dedup_key, text)


def tasks_failed(replica: str, names: list[str], now: float) -> Iterator[Event]:
    """Yield failed tasks, each at most once an hour."""
    for name in names:
        text = f"The task {name} of {replica} failed and is started again; its log has the reason."
        yield Event("task.failed", replica, f"{name} {int(now // 3600)}", text)


def state_stale(
    replica: str, since: float | None, now: float, rank: FailoverRank
) -> Iterator[Event]:
    """Yield that the store is unreachable.

    Args:
        replica: the name of this replica.
        since: when the store was last reached, in seconds since 1970; None if it is reachable.
        now: in seconds since 1970.
        rank: the failover rank of this replica.
    """
    if since is not None and now - since >= (_ALONE_SECONDS if rank.rank else _STALE_SECONDS):
        text = (
            f"The store of the state has not been reached since {moment_text(since)} (seen by"
            f" {replica}); requests are answered all the same, counts wait, and no cutover moves."
        )
        # Replicas cannot agree meanwhile, so the id depends on the term, which changes with the
        # leader, and on the day, as a term may be long.
        dedup_key = f"{rank.term} {since // _DAY:.0f}" if rank.term else f"{since // 3600:.0f}"
        yield Event("state.stale", "the state", dedup_key, text)


def replicas_lost(fleet: FleetView) -> Iterator[Event]:
    """Yield lost replicas."""
    for one in fleet.replicas:
        if one.presence == "lost":
            text = (
                f"The replica {one.replica} has not been heard since {moment_text(one.heard)};"
                " what it counted since then is missing."
            )
            yield Event("replica.lost", one.replica, f"{one.heard:.3f}", text)


def cutovers_moved(
    document: NotifyDocument, states: Mapping[VersionKey, CutoverState], now: float
) -> Iterator[Event]:
    """Yield the cutovers that moved since the document was written, and update it.

    A percentage that an operator set is no event, nor a cutover that starts again.
    """
    before = dict(document.cutovers)
    document.cutovers = [
        (key, (state.percent, state.decided_by.value)) for key, state in states.items()
    ]
    for key, state in states.items():
        known = before.get(key)
        if known is None or known == (state.percent, state.decided_by.value):
            continue
        name, dedup_key = _name(key), f"{state.percent:g} {state.decided_by} {int(now)}"
        if state.decided_by is DecidedBy.ROLLED_BACK:
            kind: EventKind = "cutover.rolled_back"
            text = f"The cutover of {name} was rolled back to 0%: {state.why}."
        elif state.decided_by is DecidedBy.HELD:
            kind = "cutover.held"
            text = f"The cutover of {name} is held at {state.percent:g}%: {state.why}."
        elif {known[1], state.decided_by} <= _STEPPING and known[0] < state.percent:
            kind = "cutover.stepped"
            text = f"The cutover of {name} went from {known[0]:g}% to {state.percent:g}%."
        else:
            continue
        yield Event(kind, name, dedup_key, text, key, "#cutover")


def sunsets_near(
    versions: Mapping[VersionKey, VersionSummary],
    summaries: Mapping[VersionKey, UsageSummary],
    now: float,
) -> Iterator[Event]:
    """Yield versions with callers 30 days, 7 days and a day before their sunset."""
    for key, version in versions.items():
        sunset = inf if version.terms is None else version.terms.sunset
        left, summary = sunset - now, summaries.get(key, UsageSummary())
        stage = next((days for days in _STAGES if 0 < left <= days * _DAY), None)
        if stage is None or summary.served < now - _RECENT * _DAY:
            continue
        text = sentence(f"{_name(key)} ends in {period_text(left)}, and {summary.calls}")
        dedup_key = f"{sunset:.0f} {stage}"
        yield Event("sunset.near", _name(key), dedup_key, text, key, "#callers")


def versions_retirable(
    keys: list[VersionKey], summaries: Mapping[VersionKey, UsageSummary]
) -> Iterator[Event]:
    """Yield retirable versions, once until a request is let through to them again."""
    for key in keys:
        dedup_key = f"{summaries.get(key, UsageSummary()).served:.0f}"
        text = sentence(
            f"{_name(key)} can be retired: nobody was let through to it in the last 30 days, and"
            " nothing speaks against it"
        )
        yield Event("version.retirable", _name(key), dedup_key, text, key, "#retire")


def brownouts_begun(
    document: NotifyDocument,
    versions: Mapping[VersionKey, VersionSummary],
    overrides: Overrides,
    now: float,
) -> Iterator[Event]:
    """Yield the brownouts that began since the document was written, and update it."""
    known = dict(document.brownouts)
    for key, version in versions.items():
        if key in overrides.paused or key in known:
            continue
        first = next(iter(version.upcoming(now)), None)
        if first is None or first.begins > now:
            continue
        begins = max(first.begins, 0.0)
        # A brownout without a begin counts from now.
        known[key] = (begins or now, min(first.ends, 1e12), first.percent)
        text = f"A brownout of {_name(key)} has begun; it refuses {_extent(first)}."
        yield Event("brownout.begun", _name(key), f"{begins:.0f}", text, key, "#brownouts")
    document.brownouts = [*known.items()]


def pop_ended_brownouts(document: NotifyDocument, now: float) -> dict[VersionKey, WindowOccurrence]:
    """Remove the ended brownouts from the document, and return them."""
    over = {key: WindowOccurrence(*noted) for key, noted in document.brownouts if noted[1] <= now}
    document.brownouts = [each for each in document.brownouts if each[0] not in over]
    return over


def brownout_ended(
    key: VersionKey, window: WindowOccurrence, minutes: Mapping[int, Interval]
) -> Event:
    """Return the end of a brownout, with its effect by the history in minutes."""
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
    dedup_key = f"{window.begins:.0f}"
    return Event("brownout.ended", _name(key), dedup_key, f"{text}.", key, "#callers")


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
