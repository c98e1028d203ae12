"""The webhooks that fail: which take no word, and since when; by what the document has."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gateway.findings.formatting import moment_text, plural
from gateway.findings.notification import NotifyDocument

# A message that was not taken so many times is late by five minutes: no restart of the receiver.
_ATTEMPTS = 3


class FailingWebhook(NamedTuple):
    """A webhook that has taken nothing since it lost or refused a message.

    Attributes:
        webhook: its name.
        since: when the first event happened of which it has not taken word, in seconds since 1970.
        waiting: the messages that are sent to it again.
        given_up: the messages that are not.
        error: why it did not take the latest one.
    """

    webhook: str
    since: float
    waiting: int
    given_up: int
    error: str

    @property
    def text(self) -> str:
        """All of that, as sentences."""
        late = [
            f"{count:,} {plural(count, 'message')} {verb}"
            for count, verb in (
                (self.waiting, "waits" if self.waiting == 1 else "wait"),
                (self.given_up, "was given up" if self.given_up == 1 else "were given up"),
            )
            if count
        ]
        return (
            f"It has taken no messages since {moment_text(self.since)}: {self.error}."
            f" {' and '.join(late)}."
        )


def failing_webhooks(document: NotifyDocument, names: Iterable[str]) -> Iterator[FailingWebhook]:
    """Yield which of these webhooks fail, until they take a message again, or a test message."""
    for name in names:
        taken = document.taken.get(name, 0.0)
        missed = [
            (one.at, each)
            for one in document.items
            if (each := one.deliveries.get(name)) and each.error and 0 < each.tried >= taken
        ]
        given_up = sum(each.state == "failed" for _, each in missed)
        if given_up or any(each.attempts >= _ATTEMPTS for _, each in missed):
            yield FailingWebhook(
                name,
                min(at for at, _ in missed),
                sum(
                    each.state == "waiting"
                    for one in document.items
                    if (each := one.deliveries.get(name))
                ),
                given_up,
                max(missed, key=lambda one: one[1].tried)[1].error,
            )
