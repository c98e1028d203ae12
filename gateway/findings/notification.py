"""Notifications: events, and the delivery of each to each webhook, in one document of the state.

-   Every replica adds the events that it finds; the id of an event is the same on all replicas.
-   The leader delivers them, retries as Standard Webhooks suggests, and records the outcome. What
    was sent when it died is sent again under the same id, by which receivers recognise it.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from gateway.base.notify import EventKind, Notify
from gateway.base.overrides import VersionKey
from gateway.findings.formatting import format_time, moment_text, plural

DOCUMENT = "notifications"
"""The name of the document."""
# The maximum number of notifications and of ids in the document; the oldest are dropped.
_MOST, _MOST_KNOWN = 100, 2000
# The seconds before each retry; see Standard Webhooks, "Deliverability and reliability".
_RETRIES = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)
# A webhook fails from this attempt at a message: five minutes are no restart of the receiver.
_FAILING_ATTEMPTS = 3


class Event(NamedTuple):
    """Something that happened.

    Attributes:
        kind: what happened.
        subject: the version, replica or file that it happened to.
        dedup_key: distinguishes events of one kind and subject; equal on every replica.
        text: what happened, as a sentence.
        version: the version; None if it is about none.
        fragment: of the address of the version's page.
    """

    kind: EventKind
    subject: str
    dedup_key: str
    text: str
    version: VersionKey | None = None
    fragment: str = ""

    @property
    def id(self) -> str:
        """The id, which depends on the kind, the subject and the dedup key."""
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
    """A webhook that has taken no message since it refused or lost one.

    Attributes:
        webhook: its name.
        since: the time of the first event of which it got no message, in seconds since 1970.
        waiting: the number of messages that will be retried.
        given_up: the number of messages that will not.
        error: the latest error.
    """

    webhook: str
    since: float
    waiting: int
    given_up: int
    error: str

    @property
    def text(self) -> str:
        """The details as sentences."""
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
        taken: when each webhook last took a message.
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
        """Add what another document has and this one does not."""
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
        """Record outcomes, by the id of the notification."""
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
        """Record that a webhook took a message, or a test message."""
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
        """Return the notifications as the admin port lists them, the latest last."""
        return [
            {
                **{name: getattr(one, name) for name in ("id", "kind")},
                "at": format_time(one.at),
                **{name: getattr(one, name) for name in ("subject", "text", "api", "version")},
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
