"""Notifications: messages about events, and their delivery to each webhook.

-   Each replica reports its refused configuration, its failed tasks and an unreachable store. The
    leader reports cutovers, brownouts, sunsets, retirable versions and lost replicas.
-   The id of an event is a hash of its kind, subject and deduplication key. The id is the same on
    every replica, and the document accepts each id only once.
-   One document in the state has the latest events and their deliveries. The leader sends due
    messages and records the outcomes (`notifier.py`). If the leader dies in between, the next
    leader sends the message again with the same id, so that receivers can detect the duplicate.
-   Retries follow Standard Webhooks. They end when the last retry fails or the receiver returns
    410.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from gateway.base.notify import Notify
from gateway.base.overrides import VersionKey
from gateway.findings.formatting import format_time, moment_text

DOCUMENT = "notifications"
RETRIES = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)
"""The seconds before each retry (Standard Webhooks, "Deliverability and reliability")."""
_MAX_ITEMS, _MAX_KNOWN = 100, 2000
# A webhook is treated as failing after this number of failed attempts. The third attempt is five
# minutes after the first, and a restart of the receiver takes less time.
_FAILING_ATTEMPTS = 3


class Delivery(msgspec.Struct):
    """The delivery of a notification to a webhook.

    Attributes:
        due: the time of the next attempt, in seconds since 1970.
        tried: the time of the latest attempt, in seconds since 1970; 0 without an attempt.
    """

    state: Literal["waiting", "sent", "failed"] = "waiting"
    attempts: int = 0
    due: float = 0.0
    error: str = ""
    tried: float = 0.0


class Notification(msgspec.Struct):
    """An event, with its delivery to each webhook. `at` is in seconds since 1970."""

    id: str
    kind: str
    at: float
    subject: str
    text: str
    api: str
    version: str
    link: str
    deliveries: dict[str, Delivery] = {}


class Attempt(NamedTuple):
    """The outcome of an attempt. `final` means that the receiver refuses retries."""

    error: str
    final: bool = False


class FailingWebhook(NamedTuple):
    """A webhook that has not accepted a message since `since`, in seconds since 1970."""

    webhook: str
    since: float
    text: str


class NotifyDocument(msgspec.Struct):
    """The state of all notifications. The lists of events and ids have the latest entry last.

    Attributes:
        cutovers: the last known percentage of each cutover, and what set it.
        brownouts: the beginning, the end and the percentage of each current brownout.
        taken: when each webhook last accepted a message, in seconds since 1970.
    """

    items: list[Notification] = []
    known: list[str] = []
    cutovers: list[tuple[VersionKey, tuple[float, str]]] = []
    brownouts: list[tuple[VersionKey, tuple[float, float, float]]] = []
    taken: dict[str, float] = {}

    def add(self, events: Iterable[Notification], notify: Notify, now: float) -> int:
        """Add events with new ids; return the number of undelivered messages that were dropped."""
        for one in events:
            if one.id in self.known:
                continue
            self.known.append(one.id)
            deliveries = {
                name: Delivery(due=now)
                for name, webhook in notify.webhooks.items()
                if webhook.events is None or one.kind in webhook.events
            }
            link = notify.page and f"{notify.page.rstrip('/')}{one.link}"
            added = msgspec.structs.replace(one, at=now, link=link, deliveries=deliveries)
            self.items += [added] if deliveries else []
        dropped = self.items[:-_MAX_ITEMS]
        del self.known[:-_MAX_KNOWN], self.items[:-_MAX_ITEMS]
        return sum(each.state == "waiting" for one in dropped for each in one.deliveries.values())

    def merge(self, other: "NotifyDocument") -> None:
        """Add the events that a replica collected while the store was unreachable."""
        for name, at in other.taken.items():
            self.record_taken(name, at)
        items = {one.id: one for one in self.items}
        for one in other.items:
            if one.id in items:  # another replica may have omitted some webhooks
                items[one.id].deliveries = one.deliveries | items[one.id].deliveries
            elif one.id not in self.known:
                self.items.append(one)
        self.known += [one for one in other.known if one not in self.known]

    def retry_delays(self, webhook: str, now: float) -> dict[str, float]:
        """Return the seconds until each next attempt, even if the clock was set back meanwhile."""
        return {
            one.id: min(max(found.due - now, 0.0), (0.0, *RETRIES)[found.attempts])
            for one in self.items
            if (found := one.deliveries.get(webhook)) and found.state == "waiting"
        }

    def record(self, outcomes: Mapping[str, Mapping[str, Attempt]], now: float) -> None:
        for one in self.items:
            for name, each in one.deliveries.items():
                attempt = outcomes.get(name, {}).get(one.id)
                if attempt is None or each.state != "waiting":
                    continue
                each.error, each.tried = attempt.error, now
                if not attempt.error:
                    each.state = "sent"
                    self.record_taken(name, now)
                elif attempt.final or each.attempts >= len(RETRIES):
                    each.state = "failed"
                else:
                    each.due = now + RETRIES[each.attempts]
                each.attempts += 1

    def record_taken(self, webhook: str, now: float) -> None:
        self.taken[webhook] = max(now, self.taken.get(webhook, 0.0))

    def forget_webhooks(self, kept: Iterable[str]) -> None:
        kept = {*kept}
        self.taken = {name: at for name, at in self.taken.items() if name in kept}
        removed = (one.deliveries[name] for one in self.items for name in {*one.deliveries} - kept)
        for each in removed:
            each.tried = 0.0  # a later webhook with this name must not count as failing
            if each.state == "waiting":
                each.state, each.error = "failed", "the configuration no longer has this webhook"

    def failing(self, names: Iterable[str]) -> Iterator[FailingWebhook]:
        """Yield the failing webhooks. One that accepts a message, even a test, no longer fails."""
        for name in names:
            found = [(one.at, each) for one in self.items if (each := one.deliveries.get(name))]
            taken = self.taken.get(name, 0.0)
            missed = [(at, each) for at, each in found if each.error and 0 < each.tried >= taken]
            lost = sum(each.state == "failed" for _, each in missed)
            if not lost and all(each.attempts < _FAILING_ATTEMPTS for _, each in missed):
                continue
            waiting = sum(each.state == "waiting" for _, each in found)
            since, latest = min(at for at, _ in missed), max(missed, key=lambda one: one[1].tried)
            text = (
                f"It has accepted no message since {moment_text(since)}: {latest[1].error}."
                f" Messages: {waiting:,} waiting, {lost:,} given up."
            )
            yield FailingWebhook(name, since, text)

    def report(self) -> list[dict[str, object]]:
        def delivery(webhook: str, one: Delivery) -> dict[str, object]:
            due = format_time(one.due) if one.state == "waiting" else None
            counts = {"state": one.state, "attempts": one.attempts}
            return {"webhook": webhook, **counts, "due": due, "error": one.error}

        shown = ("id", "kind", "at", "subject", "text", "api", "version")
        return [
            {name: getattr(one, name) for name in shown}
            | {"at": format_time(one.at)}
            | {"deliveries": [delivery(*each) for each in one.deliveries.items()]}
            for one in self.items
        ]


def read_document(document: object) -> NotifyDocument:
    """Parse the document; a missing document and the format of another release count as empty."""
    try:
        return msgspec.convert(document or {}, NotifyDocument)
    except msgspec.ValidationError:
        return NotifyDocument()
