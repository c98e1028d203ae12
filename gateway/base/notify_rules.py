"""Notify rules: who gets word of which events."""

from enum import StrEnum
from typing import NamedTuple


class EventKind(StrEnum):
    """What may happen, by the name that rules and messages have for it."""

    CUTOVER_ROLLED_BACK = "cutover.rolled_back"
    CUTOVER_HELD = "cutover.held"
    CUTOVER_STEPPED = "cutover.stepped"
    RULES_REFUSED = "rules.refused"
    SUNSET_NEAR = "sunset.near"
    BROWNOUT_BEGUN = "brownout.begun"
    BROWNOUT_ENDED = "brownout.ended"
    VERSION_RETIRABLE = "version.retirable"
    REPLICA_LOST = "replica.lost"
    STATE_STALE = "state.stale"
    TASK_FAILED = "task.failed"


class MessageForm(StrEnum):
    """How a message is written: as Standard Webhooks has it, or as a chat takes it."""

    STANDARD = "standard"
    SLACK = "slack"
    TEAMS = "teams"


class Webhook(NamedTuple):
    """A receiver of messages.

    Attributes:
        name: Its name, for logs; the URL may be a secret.
        url: The URL that messages are posted to.
        form: How they are written.
        key: The key that signs them; None signs none.
        events: The kinds of events that it gets.
    """

    name: str
    url: str
    form: MessageForm
    key: bytes | None
    events: frozenset[EventKind]


class NotifyRules(NamedTuple):
    """Who gets word of what happens.

    Attributes:
        webhooks: The receivers.
        page: The address of the admin port as operators reach it, for links; empty for none.
    """

    webhooks: tuple[Webhook, ...] = ()
    page: str = ""


NOBODY = NotifyRules()
"""The rules that send no word."""
