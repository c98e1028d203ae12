"""Notifications: events, and the delivery of each to each webhook, in one document of the state.

-   Every replica adds the events that it finds; the id of an event is the same on all replicas.
-   The leader delivers them, retries as Standard Webhooks suggests, and records the outcome. What
    was sent when it died is sent again under the same id, by which receivers recognise it.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from math import inf
from typing import Literal, NamedTuple

import msgspec

from gateway.base.notify import EventKind, Notify
from gateway.base.overrides import Overrides, VersionKey
from gateway.findings.conditions import Finding
from gateway.findings.formatting import format_time, moment_text, period_text, plural, sentence
from gateway.findings.refused_rules import RefusedRules, rules_hash
from gateway.findings.summaries import UsageSummary, VersionSummary
from gateway.lifecycle.brownout import WindowOccurrence
from gateway.rollout.cutovers import CutoverState, DecidedBy
from gateway.store.state import FailoverRank, FleetView
from gateway.usage.history import Distinct, Interval, Resolution

DOCUMENT = "notifications"
"""The name of the document."""
# The maximum number of notifications and of ids in the document; the oldest are dropped.
_MOST, _MOST_KNOWN = 100, 2000
# The seconds before each retry; see Standard Webhooks, "Deliverability and reliability".
_RETRIES = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)
# A webhook fails from this attempt at a message: five minutes are no restart of the receiver.
_FAILING_ATTEMPTS = 3
_DAY = 86_400.0
# Each of these days before a sunset is an event.
_STAGES = (1, 7, 30)
# How long the store is unreachable before the leader reports it, which a restart of the store is
# not, and before other replicas do, as the leader may be gone with the store.
_STALE_SECONDS, _ALONE_SECONDS = 30.0, 300.0
# Who decides the percentages before and after a step.
_STEPPING = frozenset({DecidedBy.RULES, DecidedBy.HELD})
# A version has callers if it served a request within these days.
_RECENT = 30


class Event(NamedTuple):
    """Something that happened; `dedup_key` is equal on every replica, and none twice."""

    kind: EventKind
    subject: str
    dedup_key: str
    text: str
    version: VersionKey | None = None
    fragment: str = ""

    @property
    def id(self) -> str:
        source = f"{self.kind}\n{self.subject}\n{self.dedup_key}"
        return f"evt_{sha256(source.encode(errors='surrogatepass')).hexdigest()[:32]}"


class Attempt(NamedTuple):
    """The outcome of an attempt; no error for a success, `final` if the receiver is gone (410)."""

    error: str
    final: bool = False


class Delivery(msgspec.Struct):
    """The delivery of a notification to a webhook; times in seconds since 1970, 0 for never."""

    state: Literal["waiting", "sent", "failed"] = "waiting"
    attempts: int = 0
    due: float = 0.0
    error: str = ""
    tried: float = 0.0


class Notification(msgspec.Struct):
    """An event, and its deliveries by the name of the webhook; `at` in seconds since 1970."""

    id: str
    kind: str
    at: float
    subject: str
    text: str
    api: str
    version: str
    link: str
    deliveries: dict[str, Delivery] = {}


class FailingWebhook(NamedTuple):
    """A webhook that has taken no message since the first it refused or lost, at `since`."""

    webhook: str
    since: float
    waiting: int
    given_up: int
    error: str

    @property
    def text(self) -> str:
        verbs = (
            (self.waiting, "waits" if self.waiting == 1 else "wait"),
            (self.given_up, "was given up" if self.given_up == 1 else "were given up"),
        )
        late = [f"{count:,} {plural(count, 'message')} {verb}" for count, verb in verbs if count]
        return (
            f"It has taken no messages since {moment_text(self.since)}: {self.error}."
            f" {' and '.join(late)}."
        )


class NotifyDocument(msgspec.Struct):
    """The document; times in seconds since 1970.

    Attributes:
        items: the latest notifications, the latest last.
        known: the ids of known events, the latest last.
        cutovers: the last known percentage of each cutover, and who decided it.
        brownouts: when the open brownout of each version began and ends, and its percentage.
    """

    items: list[Notification] = []
    known: list[str] = []
    cutovers: list[tuple[VersionKey, tuple[float, str]]] = []
    brownouts: list[tuple[VersionKey, tuple[float, float, float]]] = []
    taken: dict[str, float] = {}

    def add(self, events: Iterable[Event], notify: Notify, now: float) -> int:
        """Add unknown events; return the number of undelivered messages that were dropped."""
        known = {*self.known}
        for event in events:
            if event.id in known:
                continue
            known.add(event.id)
            self.known.append(event.id)
            deliveries = {
                name: Delivery(due=now)
                for name, webhook in notify.webhooks.items()
                if webhook.events is None or event.kind in webhook.events
            }
            if deliveries:
                self.items.append(_notification(event, notify.page, now, deliveries))
        self.known = self.known[-_MOST_KNOWN:]
        dropped, self.items = self.items[:-_MOST], self.items[-_MOST:]
        states = [each.state for one in dropped for each in one.deliveries.values()]
        return states.count("waiting")

    def merge(self, other: "NotifyDocument") -> None:
        for name, at in other.taken.items():
            self.record_taken(name, at)
        known, items = {*self.known}, {one.id: one for one in self.items}
        for one in other.items:
            if one.id in items:  # another replica had to omit some webhooks
                items[one.id].deliveries = one.deliveries | items[one.id].deliveries
        self.items += [one for one in other.items if one.id not in known]
        self.known += [one for one in other.known if one not in known]

    def waits(self, webhook: str, now: float) -> dict[str, float]:
        """Return the seconds until the next attempt, by the id of the notification.

        A retry waits for its own interval at most, also if the clock was ahead and is corrected.
        """
        return {
            one.id: min(max(found.due - now, 0.0), (0.0, *_RETRIES)[found.attempts])
            for one in self.items
            if (found := one.deliveries.get(webhook)) and found.state == "waiting"
        }

    def record(self, webhook: str, attempts: Mapping[str, Attempt], now: float) -> None:
        for one in self.items:
            found, attempt = one.deliveries.get(webhook), attempts.get(one.id)
            if found is None or attempt is None or found.state != "waiting":
                continue
            found.error, found.tried = attempt.error, now
            if not attempt.error:
                found.state = "sent"
                self.record_taken(webhook, now)
            elif attempt.final or found.attempts >= len(_RETRIES):
                found.state = "failed"
            else:
                found.due = now + _RETRIES[found.attempts]
            found.attempts += 1

    def record_taken(self, webhook: str, now: float) -> None:
        self.taken[webhook] = max(now, self.taken.get(webhook, 0.0))

    def forget_webhooks(self, kept: Iterable[str]) -> None:
        """Give up messages to other webhooks than these."""
        kept = {*kept}
        self.taken = {name: at for name, at in self.taken.items() if name in kept}
        for one in self.items:
            for name, delivery in one.deliveries.items():
                if name in kept:
                    continue
                delivery.tried = 0.0  # a later webhook of this name does not fail for it
                if delivery.state == "waiting":
                    delivery.state = "failed"
                    delivery.error = "the rules have no such webhook any more"

    def failing(self, names: Iterable[str]) -> Iterator[FailingWebhook]:
        """Yield which of these webhooks fail, until they take a message or a test message."""
        for name in names:
            found = [(one.at, each) for one in self.items if (each := one.deliveries.get(name))]
            taken = self.taken.get(name, 0.0)
            missed = [(at, each) for at, each in found if each.error and 0 < each.tried >= taken]
            given_up = sum(each.state == "failed" for _, each in missed)
            if given_up or any(each.attempts >= _FAILING_ATTEMPTS for _, each in missed):
                waiting = sum(each.state == "waiting" for _, each in found)
                latest = max(missed, key=lambda one: one[1].tried)[1]
                since = min(at for at, _ in missed)
                yield FailingWebhook(name, since, waiting, given_up, latest.error)

    def report(self) -> list[dict[str, object]]:
        shown = ("id", "kind", "at", "subject", "text", "api", "version")
        return [
            {
                **{name: getattr(one, name) for name in shown},
                "at": format_time(one.at),
                "deliveries": [
                    {
                        "webhook": name,
                        "state": each.state,
                        "attempts": each.attempts,
                        "due": format_time(each.due) if each.state == "waiting" else None,
                        "error": each.error,
                    }
                    for name, each in one.deliveries.items()
                ],
            }
            for one in self.items
        ]


def read_document(document: object) -> NotifyDocument:
    """Return the document; an empty one if there is none, or one of another release."""
    try:
        return msgspec.convert(document or {}, NotifyDocument)
    except msgspec.ValidationError:
        return NotifyDocument()


def _notification(
    event: Event, page: str, now: float, deliveries: dict[str, Delivery]
) -> Notification:
    api, version = event.version or ("", "")
    path = f"/page/versions/{api}/{version}{event.fragment}" if api and version else "/"
    link = f"{page.rstrip('/')}{path}" if page else ""
    return Notification(
        *(event.id, event.kind, now, event.subject, event.text, api, version, link), deliveries
    )


def _event(
    finding: Finding, subject: str, dedup_key: str, text: str, version: VersionKey | None = None
) -> Event:
    assert finding.event is not None
    fragment = "" if version is None else finding.link
    return Event(finding.event, subject, dedup_key, text, version, fragment)


def rules_refused(replica: str, refused: RefusedRules | None) -> Iterator[Event]:
    if refused is not None:
        text = sentence(
            "the edited rules cannot be used, and the former ones stay in force (seen by"
            f" {replica}): {refused.summary}"
        )
        # Replicas with the same file find the same event.
        yield _event(Finding.RULES_REFUSED, "the rules", rules_hash(refused.content), text)


def tasks_failed(replica: str, names: list[str], now: float) -> Iterator[Event]:
    """Yield failed tasks, each at most once an hour."""
    for name in names:
        text = f"The task {name} of {replica} failed and is started again; its log has the reason."
        yield _event(Finding.TASK_FAILS, replica, f"{name} {int(now // 3600)}", text)


def state_stale(
    replica: str, since: float | None, now: float, rank: FailoverRank
) -> Iterator[Event]:
    """Yield that the store is unreachable since a time; None if it is reachable."""
    if since is not None and now - since >= (_ALONE_SECONDS if rank.rank else _STALE_SECONDS):
        text = (
            f"The store of the state has not been reached since {moment_text(since)} (seen by"
            f" {replica}); requests are answered all the same, counts wait, and no cutover moves."
        )
        # Replicas cannot agree meanwhile, so the id depends on the term, which changes with the
        # leader, and on the day, as a term may be long.
        dedup_key = f"{rank.term} {since // _DAY:.0f}" if rank.term else f"{since // 3600:.0f}"
        yield _event(Finding.STATE_STALE, "the state", dedup_key, text)


def replicas_lost(fleet: FleetView) -> Iterator[Event]:
    for one in fleet.replicas:
        if one.presence == "lost":
            text = (
                f"The replica {one.replica} has not been heard since {moment_text(one.heard)};"
                " what it counted since then is missing."
            )
            yield _event(Finding.REPLICA_LOST, one.replica, f"{one.heard:.3f}", text)


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
        dedup_key = f"{state.percent:g} {state.decided_by} {int(now)}"
        name = _name(key)
        if state.decided_by is DecidedBy.ROLLED_BACK:
            text = f"The cutover of {name} was rolled back to 0%: {state.why}."
            yield _event(Finding.ROLLED_BACK, name, dedup_key, text, key)
        elif state.decided_by is DecidedBy.HELD:
            text = f"The cutover of {name} is held at {state.percent:g}%: {state.why}."
            yield _event(Finding.CUTOVER_HELD, name, dedup_key, text, key)
        elif {known[1], state.decided_by} <= _STEPPING and known[0] < state.percent:
            text = f"The cutover of {name} went from {known[0]:g}% to {state.percent:g}%."
            yield Event("cutover.stepped", name, dedup_key, text, key, "#cutover")


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
        if stage is not None and summary.served >= now - _RECENT * _DAY:
            text = sentence(f"{_name(key)} ends in {period_text(left)}, and {summary.calls}")
            dedup_key = f"{sunset:.0f} {stage}"
            yield _event(Finding.SUNSET_NEAR, _name(key), dedup_key, text, key)


def versions_retirable(
    keys: Iterable[VersionKey], summaries: Mapping[VersionKey, UsageSummary]
) -> Iterator[Event]:
    """Yield retirable versions, once until a request is let through to them again."""
    for key in keys:
        dedup_key = f"{summaries.get(key, UsageSummary()).served:.0f}"
        text = sentence(
            f"{_name(key)} can be retired: nobody was let through to it in the last 30 days, and"
            " nothing speaks against it"
        )
        yield _event(Finding.RETIRABLE, _name(key), dedup_key, text, key)


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
        until = "" if first.ends == inf else f" until {moment_text(first.ends)}"
        text = (
            f"A brownout of {_name(key)} has begun; it refuses"
            f" {first.percent:g}% of its requests{until}."
        )
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


def _name(key: VersionKey) -> str:
    return f"version {key[1]} of {key[0]}"
