"""Word of an event is sent to each webhook until it is taken, and known by one id for ever."""

import msgspec
import pytest

from gateway.base.notify_rules import EventKind, MessageForm, NotifyRules, Webhook
from gateway.findings import notification
from gateway.findings.notification import (
    Attempt,
    Happening,
    NotifyDocument,
    add,
    brief,
    forget_webhooks,
    merge,
    note,
    read_document,
    waits,
)

LOST = Happening(EventKind.REPLICA_LOST, "b", "5.000", "The replica b is lost.")
STEPPED = Happening(
    EventKind.CUTOVER_STEPPED, "person 1", "25", "It went.", ("person", "1"), "#cutover"
)
EVERY = frozenset(EventKind)
OPS = Webhook("ops", "http://ops", MessageForm.STANDARD, None, EVERY)
CHAT = Webhook("chat", "http://chat", MessageForm.SLACK, None, EVERY - {STEPPED.kind})
RULES = NotifyRules((OPS, CHAT), "https://page")
TAKEN, BUSY = Attempt(""), Attempt("it answered 500")


def states(document: NotifyDocument, webhook: str) -> list[str]:
    found = (one.deliveries.get(webhook) for one in document.items)
    return [each.state for each in found if each is not None]


def test_an_event_is_added_once_and_for_who_wants_it() -> None:
    document = NotifyDocument()
    for _ in range(2):
        assert add(document, [LOST, STEPPED, LOST], RULES, 5.0) == []
    lost, stepped = document.items
    assert [*lost.deliveries] == ["ops", "chat"]
    assert [*stepped.deliveries] == ["ops"]
    assert (lost.link, stepped.link) == (
        "https://page/",
        "https://page/page/versions/person/1#cutover",
    )
    assert (stepped.api, stepped.version, stepped.at) == ("person", "1", 5.0)
    again = read_document(msgspec.json.decode(brief(document)))
    assert again == document


def test_ids_are_of_the_event_alone() -> None:
    assert LOST.identity == LOST._replace(text="otherwise").identity
    others = [
        LOST._replace(mark="6"),
        LOST._replace(subject="c"),
        LOST._replace(kind=EventKind.TASK_FAILED),
    ]
    assert len({LOST.identity, *(other.identity for other in others)}) == 4
    assert LOST.identity == "evt_b3c18f3350ba3aa5606831da2bae3981"


def test_it_is_tried_again_ever_later_and_then_given_up() -> None:
    document = NotifyDocument()
    add(document, [LOST], RULES, 0.0)
    tried, now = [], 0.0
    while (found := document.items[0].deliveries["ops"]).state == "waiting":
        ((identity, wait),) = waits(document, "ops", now).items()
        now += wait
        assert waits(document, "ops", now) == {identity: 0}
        note(document, "ops", {identity: BUSY}, now)
        tried.append(now)
    assert tried == [0, 5, 305, 2105, 9305, 27305, 63305, 99305]
    assert (found.state, found.attempts, found.error) == ("failed", 8, "it answered 500")
    assert states(document, "chat") == ["waiting"]


def test_a_clock_that_was_ahead_keeps_no_message_back() -> None:
    document = NotifyDocument()
    one = LOST.identity
    add(document, [LOST], RULES, 1e9)
    assert waits(document, "ops", 0.0) == {one: 0}
    note(document, "ops", {one: BUSY}, 1e9)
    assert waits(document, "ops", 0.0) == {one: 5}


def test_how_it_ends() -> None:
    document = NotifyDocument()
    add(document, [LOST, STEPPED], RULES, 0.0)
    first, second = (one.id for one in document.items)
    note(document, "ops", {first: BUSY}, 0.0)
    note(document, "ops", {first: TAKEN, second: Attempt("it answered 410", final=True)}, 5.0)
    assert states(document, "ops") == ["sent", "failed"]
    note(document, "ops", {first: BUSY, "evt_other": BUSY}, 9.0)
    assert states(document, "ops") == ["sent", "failed"]
    forget_webhooks(document, ["ops"])
    assert states(document, "chat") == ["failed"]


def test_what_was_kept_elsewhere_is_added_once() -> None:
    document, other = NotifyDocument(), NotifyDocument()
    add(document, [LOST], RULES, 0.0)
    add(other, [LOST, STEPPED], RULES, 5.0)
    note(other, "ops", {one.id: TAKEN for one in other.items}, 5.0)
    for _ in range(2):
        merge(document, other)
        assert states(document, "ops") == ["waiting", "sent"]
        assert document.known == [LOST.identity, STEPPED.identity]


def test_what_another_replica_left_out_is_added() -> None:
    document, other = NotifyDocument(), NotifyDocument()
    add(document, [LOST], NotifyRules((OPS,)), 0.0)
    add(other, [LOST], RULES, 5.0)
    note(document, "ops", {LOST.identity: TAKEN}, 5.0)
    merge(document, other)
    assert states(document, "ops") == ["sent"]
    assert states(document, "chat") == ["waiting"]


def test_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification, "_MOST", 3)
    monkeypatch.setattr(notification, "_MOST_KNOWN", 4)
    document = NotifyDocument()
    events = [LOST._replace(mark=str(number)) for number in range(5)]
    gone = add(document, events, NotifyRules((OPS,)), 0.0)
    assert [each.state for each in gone] == ["waiting"] * 2
    assert [one.id for one in document.items] == [one.identity for one in events[2:]]
    assert document.known == [one.identity for one in events[1:]]


@pytest.mark.parametrize("stored", [None, {}, {"items": 5}, [1]])
def test_a_document_that_cannot_be_read_is_an_empty_one(stored: object) -> None:
    assert read_document(stored) == NotifyDocument()
