"""NotifyLine: the messages that webhooks get, as JSON and as a text."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Literal

import msgspec

from gateway.base.mistakes import printable
from gateway.findings.formatting import format_time
from gateway.findings.notification import NotifyDocument


class DeliveryLine(msgspec.Struct, frozen=True):
    """How far a message got to one webhook.

    Attributes:
        webhook: its name.
        state: waiting, sent, or failed after the last attempt.
        attempts: the number of attempts.
        due: when the next one is due; None if there is none.
        error: why the last one failed; empty if it did not.
    """

    webhook: str
    state: Literal["waiting", "sent", "failed"]
    attempts: int
    due: str | None
    error: str


class NotifyLine(msgspec.Struct, frozen=True):
    """An event of which word is sent.

    Attributes:
        id: the same in every message about it.
        kind: such as cutover.rolled_back.
        at: when it was seen.
        subject: what it happened to.
        text: what happened, as a sentence.
        api: the API of the version that it is about; empty if it is about none.
        version: the label of that version.
        deliveries: how far the message got.
    """

    id: str
    kind: str
    at: str
    subject: str
    text: str
    api: str
    version: str
    deliveries: list[DeliveryLine]


class WebhookTest(msgspec.Struct, frozen=True):
    """How a test message to a webhook ended; `error` is empty if it was taken."""

    webhook: str
    error: str


def notify_report(document: "NotifyDocument") -> list[NotifyLine]:
    """Return the events of a document, the latest last."""
    return [
        NotifyLine(
            *(one.id, one.kind, format_time(one.at), one.subject, one.text),
            *(one.api, one.version),
            [
                DeliveryLine(
                    *(name, each.state, each.attempts),
                    format_time(each.due) if each.state == "waiting" else None,
                    each.error,
                )
                for name, each in one.deliveries.items()
            ],
        )
        for one in document.items
    ]


def notify_table(lines: Sequence[NotifyLine]) -> str:
    """Return the events as a text for people, which fits a terminal of 80 columns."""
    if not lines:
        return "No word was sent yet."
    return "\n".join(part for line in lines for part in _event(line))


def _event(line: NotifyLine) -> Iterator[str]:
    yield f"{line.at}  {line.kind}"
    yield from _wrapped(line.text)
    for each in line.deliveries:
        yield from _wrapped(f"{each.webhook}: {_state(each)}")


def _wrapped(text: str) -> list[str]:
    return wrap(printable(text), 80, initial_indent="  ", subsequent_indent="    ")


def _state(one: DeliveryLine) -> str:
    if one.state == "waiting" and one.error:
        return f"{one.error}; again at {one.due}"
    return f"failed: {one.error}" if one.state == "failed" else one.state
