"""The document of notifications: adding events, recording deliveries, and failing webhooks."""

import msgspec
import pytest

from gateway.base.notify import Notify, Webhook
from gateway.findings import notifications
from gateway.findings.conditions import Finding
from gateway.findings.events import event
from gateway.findings.notifications import Attempt, NotifyDocument, read_document

LOST = event(Finding.REPLICA_LOST, "b", "5.000", "The replica b is lost.")
STEPPED = event(("cutover.stepped", "#cutover"), "person 1", "25", "It went.", ("person", "1"))
OPS = Webhook(url="http://ops")
CHAT = Webhook(url="http://chat", form="slack", events=("replica.lost", "task.failed"))
BOTH = Notify(webhooks={"ops": OPS, "chat": CHAT}, page="https://page")
ONE = Notify(webhooks={"ops": OPS})
TAKEN, BUSY = Attempt(""), Attempt("it responded with status 500")


def states(document: NotifyDocument, webhook: str) -> list[str]:
    found = (one.deliveries.get(webhook) for one in document.items)
    return [each.state for each in found if each is not None]


def test_an_event_is_added_once_for_the_webhooks_that_accept_its_kind() -> None:
    document = NotifyDocument()
    for _ in range(2):
        assert document.add([LOST, STEPPED, LOST], BOTH, 5.0) == 0
    lost, stepped = document.items
    assert [*lost.deliveries] == ["ops", "chat"]
    assert [*stepped.deliveries] == ["ops"]
    assert (lost.link, stepped.link) == (
        "https://page/",
        "https://page/page/versions/person/1#cutover",
    )
    assert (stepped.api, stepped.version, stepped.at) == ("person", "1", 5.0)
    again = read_document(msgspec.json.decode(msgspec.json.encode(document)))
    assert again == document


def test_an_id_depends_on_kind_subject_and_dedup_key() -> None:
    assert LOST.id == event(Finding.REPLICA_LOST, "b", "5.000", "another text").id
    others = [
        event(Finding.REPLICA_LOST, "b", "6", ""),
        event(Finding.REPLICA_LOST, "c", "5.000", ""),
        event(Finding.TASK_FAILS, "b", "5.000", ""),
    ]
    assert len({LOST.id, *(other.id for other in others)}) == 4
    assert LOST.id == "evt_b3c18f3350ba3aa5606831da2bae3981"


def test_a_message_is_retried_at_growing_intervals_and_then_given_up() -> None:
    document = NotifyDocument()
    document.add([LOST], BOTH, 0.0)
    tried, now = [], 0.0
    while (found := document.items[0].deliveries["ops"]).state == "waiting":
        ((identity, wait),) = document.retry_delays("ops", now).items()
        now += wait
        assert document.retry_delays("ops", now) == {identity: 0}
        document.record({"ops": {identity: BUSY}}, now)
        tried.append(now)
    assert tried == [0, 5, 305, 2105, 9305, 27305, 63305, 99305]
    assert (found.state, found.attempts, found.error) == (
        "failed",
        8,
        ("it responded with status 500"),
    )
    assert states(document, "chat") == ["waiting"]


def test_a_clock_that_is_set_back_does_not_delay_a_retry() -> None:
    document = NotifyDocument()
    one = LOST.id
    document.add([LOST], BOTH, 1e9)
    assert document.retry_delays("ops", 0.0) == {one: 0}
    document.record({"ops": {one: BUSY}}, 1e9)
    assert document.retry_delays("ops", 0.0) == {one: 5}


def test_only_the_first_outcome_of_a_delivery_is_recorded() -> None:
    document = NotifyDocument()
    document.add([LOST, STEPPED], BOTH, 0.0)
    first, second = (one.id for one in document.items)
    document.record({"ops": {first: BUSY}}, 0.0)
    document.record(
        {"ops": {first: TAKEN, second: Attempt("it responded with status 410", final=True)}}, 5.0
    )
    assert states(document, "ops") == ["sent", "failed"]
    document.record({"ops": {first: BUSY, "evt_other": BUSY}}, 9.0)
    assert states(document, "ops") == ["sent", "failed"]
    document.forget_webhooks(["ops"])
    assert states(document, "chat") == ["failed"]


def test_merging_a_document_twice_adds_its_events_once() -> None:
    document, other = NotifyDocument(), NotifyDocument()
    document.add([LOST], BOTH, 0.0)
    other.add([LOST, STEPPED], BOTH, 5.0)
    other.record({"ops": {one.id: TAKEN for one in other.items}}, 5.0)
    for _ in range(2):
        document.merge(other)
        assert states(document, "ops") == ["waiting", "sent"]
        assert document.known == [LOST.id, STEPPED.id]


def test_merging_a_document_adds_its_deliveries_to_known_events() -> None:
    document, other = NotifyDocument(), NotifyDocument()
    document.add([LOST], ONE, 0.0)
    other.add([LOST], BOTH, 5.0)
    document.record({"ops": {LOST.id: TAKEN}}, 5.0)
    document.merge(other)
    assert states(document, "ops") == ["sent"]
    assert states(document, "chat") == ["waiting"]


def test_the_oldest_notifications_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "_MAX_ITEMS", 3)
    monkeypatch.setattr(notifications, "_MAX_KNOWN", 4)
    document = NotifyDocument()
    events = [event(Finding.REPLICA_LOST, "b", str(number), "") for number in range(5)]
    gone = document.add(events, ONE, 0.0)
    assert gone == 2
    assert [one.id for one in document.items] == [one.id for one in events[2:]]
    assert document.known == [one.id for one in events[1:]]


@pytest.mark.parametrize("stored", [None, {}, {"items": 5}, [1]])
def test_an_unreadable_document_is_treated_as_empty(stored: object) -> None:
    assert read_document(stored) == NotifyDocument()


FIRST, SECOND = LOST.id, STEPPED.id
GONE = Attempt("it responded with status 410", final=True)


def failures(document: NotifyDocument) -> list[tuple[float, str]]:
    """Return the time and the text of the failing webhook `ops`; other webhooks must not fail."""
    found = [*document.failing(["ops", "chat", "unknown"])]
    assert {each.webhook for each in found} <= {"ops"}
    return [each[1:] for each in found]


def text(error: str, waiting: int, lost: int) -> str:
    return (
        f"It has accepted no message since 1 Jan 1970, 00:01 UTC: it responded with status {error}."
        f" Messages: {waiting} waiting, {lost} given up."
    )


def two_events() -> NotifyDocument:
    document = NotifyDocument()
    document.add([LOST, STEPPED], BOTH, 60.0)
    return document


def test_a_webhook_fails_after_three_failed_attempts_until_it_accepts_a_message() -> None:
    document = two_events()
    for number in range(3):
        assert failures(document) == []
        document.record({"ops": {FIRST: BUSY}}, 100.0 + number)
    assert failures(document) == [(60.0, text("500", 2, 0))]
    document.record({"ops": {SECOND: TAKEN}}, 200.0)
    assert failures(document) == []
    document.record({"ops": {FIRST: BUSY}}, 300.0)
    assert failures(document) == [(60.0, text("500", 1, 0))]


def test_a_webhook_fails_when_a_message_is_given_up() -> None:
    """The webhook fails even if it has just accepted another message.

    The failure ends when it accepts a later one.
    """
    document = two_events()
    document.record({"ops": {FIRST: TAKEN, SECOND: GONE}}, 100.0)
    assert failures(document) == [(60.0, text("410", 0, 1))]
    document.record_taken("ops", 101.0)
    document.record_taken("ops", 50.0)  # the clock was set back
    assert failures(document) == []


def test_a_removed_webhook_does_not_count_as_failing() -> None:
    document = two_events()
    document.record({"ops": {FIRST: GONE}}, 100.0)
    document.forget_webhooks([])
    assert failures(document) == []


def test_a_message_accepted_in_a_merged_document_ends_the_failure() -> None:
    document, other = two_events(), NotifyDocument()
    document.record({"ops": {FIRST: GONE}}, 100.0)
    other.record_taken("ops", 101.0)
    document.merge(other)
    assert failures(document) == []
