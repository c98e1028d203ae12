"""`notify` in gateway.yaml: webhooks that get word of what happens."""

import re
from base64 import b64decode
from functools import partial
from typing import Literal

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.model import Name, Secret, SectionModel, Some
from gateway.base.notify_rules import EventKind, MessageForm, NotifyRules, Webhook

_URL = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?", re.ASCII)
# Standard Webhooks, "Signature scheme": 24 to 64 random bytes, as base64 behind this prefix.
_PREFIX = "whsec_"
_SHORTEST, _LONGEST = 24, 64

EventName = Literal[
    "cutover.rolled_back",
    "cutover.held",
    "cutover.stepped",
    "rules.refused",
    "sunset.near",
    "brownout.begun",
    "brownout.ended",
    "version.retirable",
    "replica.lost",
    "state.stale",
    "task.failed",
]


class WebhookConfig(SectionModel):
    """A receiver of messages about events."""

    url: Secret
    """The URL that messages are posted to. Take it from the environment, ${NAME}, where it is a
    secret, as those of chats are."""
    form: Literal["standard", "slack", "teams"] = "standard"
    """How messages are written: as Standard Webhooks has it, or as Slack or Microsoft Teams takes
    it. The default is standard."""
    secret: Secret | None = None
    """The key that signs messages as Standard Webhooks has it: `whsec_` and 24 to 64 random bytes
    as base64. Take it from the environment: ${NAME}. Without it, messages are not signed."""
    events: Some[EventName] | None = None
    """The kinds of events that the receiver gets. Without it, it gets all."""


class NotifyConfig(SectionModel):
    """The receivers of messages about events, such as a cutover that is rolled back."""

    webhooks: dict[Name, WebhookConfig] = Field(min_length=1)
    """The receivers of messages, by name."""
    page: str = ""
    """The URL of the admin port as operators reach it, for the links in messages. By default,
    messages have no links."""


def build_notify(config: NotifyConfig, mistakes: Mistakes) -> NotifyRules:
    """Return who gets word of what; mistakes go to `mistakes`."""
    webhooks = []
    for name, section in config.webhooks.items():
        at = ("notify", "webhooks", name)
        mistakes.attempt(partial(_check_url, section.url), *at, "url")
        key = None
        if section.secret is not None:
            key = mistakes.attempt(partial(_key, section.secret), *at, "secret")
            if section.form != "standard":
                mistakes.add("chats check no signature; remove it, or 'form'", *at, "secret")
        events = [*EventKind] if section.events is None else section.events
        form = MessageForm(section.form)
        webhooks.append(Webhook(name, section.url, form, key, frozenset(map(EventKind, events))))
    if config.page:
        mistakes.attempt(partial(_check_url, config.page), "notify", "page")
    return NotifyRules(tuple(webhooks), config.page.rstrip("/"))


def _check_url(text: str) -> None:
    if not _URL.fullmatch(text):  # not repeated: it may be a secret
        raise ValueError("not a URL; write one like https://example.com/path")


def _key(secret: str) -> bytes:
    try:
        found = b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        found = b""
    if not secret.startswith(_PREFIX) or not _SHORTEST <= len(found) <= _LONGEST:
        raise ValueError(
            f"not a key of Standard Webhooks; write {_PREFIX} and {_SHORTEST} to {_LONGEST} random"
            " bytes as base64"
        )
    return found
