"""Notifications: what happened, and how far word of it has got.

All of it is one document in the state, which all replicas share:

-   Each replica adds what it sees; what has an id that is known already is left out.
-   The one that judges sends what waits, again and again at the times that Standard Webhooks
    suggests, and notes how that ended. One that takes its place goes on from there. What was sent
    when it died, and not noted, is sent again under the same id, by which receivers know it.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from gateway.base.notify_rules import EventKind, NotifyRules
from gateway.base.overrides import VersionKey

DOCUMENT = "notifications"
"""The name of the document."""
# So many notifications, and ids, are kept; the oldest go first.
_MOST = 100
_MOST_KNOWN = 2000
# The seconds before each further attempt; see Standard Webhooks, "Deliverability and reliability".
_WAITS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)

DeliveryState = Literal["waiting", "sent", "failed"]


class Happening(NamedTuple):
    """Something that happened.

    Attributes:
        kind: what.
        subject: the version, replica or file that it happened to; empty for none.
        mark: what tells it from others of the same kind and subject; the same on every replica.
        text: what happened, as a sentence.
        key: the version; None if it is about none.
        part: of the view of the version, that has more: a fragment of its address.
    """

    kind: EventKind
    subject: str
    mark: str
    text: str
    key: VersionKey | None = None
    part: str = ""

    @property
    def identity(self) -> str:
        """The id of the event, which stays the same whoever saw it and however often it is sent."""
        source = f"{self.kind}\n{self.subject}\n{self.mark}"
        return f"evt_{sha256(source.encode(errors='surrogatepass')).hexdigest()[:32]}"


class Attempt(NamedTuple):
    """How an attempt to send a notification ended.

    Attributes:
        error: why it was not taken; empty if it was.
        final: whether the receiver wants no more messages at all.
    """

    error: str
    final: bool = False


class Delivery(msgspec.Struct):
    """How far a notification has got to one webhook.

    Attributes:
        state: waiting, sent, or failed after the last attempt.
        attempts: the number of attempts.
        due: when the next one is due, in seconds since 1970.
        error: why the last one failed; empty if it did not.
        tried: when that was, in seconds since 1970; 0 for never.
    """

    state: DeliveryState = "waiting"
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


class NotifyDocument(msgspec.Struct):
    """The document.

    Attributes:
        items: the latest notifications, the latest last.
        known: the ids of events that were added, the latest last.
        cutovers: the percentage of each cutover when it was last looked at, and who decided it.
        brownouts: when the open brownout of each version began and ends, and its percentage.
        taken: when each webhook took a message last, in seconds since 1970.
    """

    items: list[Notification] = []
    known: list[str] = []
    cutovers: list[tuple[VersionKey, tuple[float, str]]] = []
    brownouts: list[tuple[VersionKey, tuple[float, float, float]]] = []
    taken: dict[str, float] = {}


def read_document(document: object) -> NotifyDocument:
    """Return the document; an empty one if there is none, or one of another release."""
    try:
        return msgspec.convert(document or {}, NotifyDocument)
    except msgspec.ValidationError:
        return NotifyDocument()


def brief(document: object) -> bytes:
    """Return a document as JSON, to compare two of them."""
    return msgspec.json.encode(document)


def add(
    document: NotifyDocument,
    happenings: Iterable[Happening],
    rules: NotifyRules,
    now: float,
) -> list[Delivery]:
    """Add what is not known yet, for each webhook that wants it; return what had to be dropped.

    Args:
        document: is changed.
        happenings: what happened.
        rules: name the webhooks.
        now: in seconds since 1970.
    """
    known = {*document.known}
    for one in happenings:
        if one.identity in known:
            continue
        known.add(one.identity)
        document.known.append(one.identity)
        wanted = {
            each.name: Delivery(due=now) for each in rules.webhooks if one.kind in each.events
        }
        if wanted:
            document.items.append(_notification(one, rules.page, now, wanted))
    document.known = document.known[-_MOST_KNOWN:]
    gone, document.items = document.items[:-_MOST], document.items[-_MOST:]
    return [each for one in gone for each in one.deliveries.values() if each.state == "waiting"]


def merge(document: NotifyDocument, other: NotifyDocument) -> None:
    """Add what another document knows and this one, which is changed, does not."""
    for name, at in other.taken.items():
        note_taken(document, name, at)
    known, items = {*document.known}, {one.id: one for one in document.items}
    for one in other.items:
        if one.id in items:  # another replica had to leave some webhooks out
            items[one.id].deliveries = one.deliveries | items[one.id].deliveries
    document.items += [one for one in other.items if one.id not in known]
    document.known += [one for one in other.known if one not in known]


def _notification(
    one: Happening, page: str, now: float, deliveries: dict[str, Delivery]
) -> Notification:
    api, version = one.key or ("", "")
    part = f"/page/versions/{api}/{version}{one.part}" if one.key and version else "/"
    link = f"{page}{part}" if page else ""
    return Notification(
        one.identity, one.kind, now, one.subject, one.text, api, version, link, deliveries
    )


def waits(document: NotifyDocument, webhook: str, now: float) -> dict[str, float]:
    """Return for how many seconds what is to be sent to a webhook has to wait, by its id.

    No longer than after its last attempt, also if the clock was ahead then and is put right.
    """
    return {
        one.id: min(max(found.due - now, 0.0), (0.0, *_WAITS)[found.attempts])
        for one in document.items
        if (found := one.deliveries.get(webhook)) and found.state == "waiting"
    }


def forget_webhooks(document: NotifyDocument, names: Iterable[str]) -> None:
    """Give up what waits for webhooks that the rules have no more."""
    kept = {*names}
    document.taken = {name: at for name, at in document.taken.items() if name in kept}
    for one in document.items:
        for name, delivery in one.deliveries.items():
            if name in kept:
                continue
            delivery.tried = 0.0  # one that has the name later on does not fail for it
            if delivery.state == "waiting":
                delivery.state, delivery.error = "failed", "the rules have no such webhook any more"


def note(
    document: NotifyDocument, webhook: str, attempts: Mapping[str, Attempt], now: float
) -> None:
    """Note how attempts ended.

    Args:
        document: is changed.
        webhook: that was asked.
        attempts: by the id of the notification.
        now: in seconds since 1970.
    """
    for one in document.items:
        found = one.deliveries.get(webhook)
        attempt = attempts.get(one.id)
        if found is None or attempt is None or found.state != "waiting":
            continue
        found.error, found.tried = attempt.error, now
        if not attempt.error:
            found.state = "sent"
            note_taken(document, webhook, now)
        elif attempt.final or found.attempts >= len(_WAITS):
            found.state = "failed"
        else:
            found.due = now + _WAITS[found.attempts]
        found.attempts += 1


def note_taken(document: NotifyDocument, webhook: str, now: float) -> None:
    """Note that a webhook took a message, or a test message."""
    document.taken[webhook] = max(now, document.taken.get(webhook, 0.0))
