"""A webhook fails from its third failure, or a message given up, until it takes one."""

from gateway.findings.failing_webhooks import failing_webhooks
from gateway.findings.notification import (
    Attempt,
    NotifyDocument,
    add,
    forget_webhooks,
    merge,
    note,
    note_taken,
)
from tests.gateway.findings.test_notification import (
    BUSY,
    LOST,
    OPS,
    RULES,
    STEPPED,
    TAKEN,
)

FIRST, SECOND = LOST.identity, STEPPED.identity
GONE = Attempt("it answered 410", final=True)


def told(document: NotifyDocument) -> list[tuple[float, int, int, str]]:
    """Return how one webhook fails, if it does; no other may."""
    found = [*failing_webhooks(document, ["ops", "chat", "unknown"])]
    assert {each.webhook for each in found} <= {OPS.name}
    return [each[1:] for each in found]


def happened() -> NotifyDocument:
    document = NotifyDocument()
    add(document, [LOST, STEPPED], RULES, 60.0)
    return document


def test_it_has_failed_for_a_while() -> None:
    document = happened()
    for number in range(3):
        assert told(document) == []
        note(document, "ops", {FIRST: BUSY}, 100.0 + number)
    assert told(document) == [(60.0, 2, 0, "it answered 500")]
    note(document, "ops", {SECOND: TAKEN}, 200.0)
    assert told(document) == []
    note(document, "ops", {FIRST: BUSY}, 300.0)
    assert told(document) == [(60.0, 1, 0, "it answered 500")]


def test_a_message_was_given_up() -> None:
    """Also right after another one was taken; a test message that is taken ends it."""
    document = happened()
    note(document, "ops", {FIRST: TAKEN, SECOND: GONE}, 100.0)
    assert told(document) == [(60.0, 0, 1, "it answered 410")]
    (failing,) = failing_webhooks(document, ["ops"])
    assert failing.text == (
        "It has taken no messages since 1 Jan 1970, 00:01 UTC: it answered 410."
        " 1 message was given up."
    )
    assert (
        "3 messages wait and 2 messages were given up."
        in failing._replace(waiting=3, given_up=2).text
    )
    note_taken(document, "ops", 101.0)
    note_taken(document, "ops", 50.0)  # a clock that was set back
    assert told(document) == []


def test_one_that_the_rules_name_again_begins_anew() -> None:
    document = happened()
    note(document, "ops", {FIRST: GONE}, 100.0)
    forget_webhooks(document, [])
    assert told(document) == []


def test_what_another_document_knows_counts() -> None:
    document, other = happened(), NotifyDocument()
    note(document, "ops", {FIRST: GONE}, 100.0)
    note_taken(other, "ops", 101.0)
    merge(document, other)
    assert told(document) == []
