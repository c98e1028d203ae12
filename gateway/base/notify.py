"""`notify` in gateway.yaml: webhooks that receive messages about events."""

import re
from base64 import b64decode
from functools import partial
from typing import Literal

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.model import Name, Secret, SectionModel, Some

_URL = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?", re.ASCII)
# Standard Webhooks, "Signature scheme": this prefix, then 24 to 64 random bytes as base64.
_PREFIX = "whsec_"
_SHORTEST, _LONGEST = 24, 64

EventKind = Literal[
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


class Webhook(SectionModel):
    """A receiver of messages about events."""

    url: Secret
    """The URL to which messages are posted. If the URL is secret, as the URLs of chats are, take it
    from the environment: ${NAME}."""
    form: Literal["standard", "slack", "teams"] = "standard"
    """The format of messages: Standard Webhooks, Slack or Microsoft Teams. The default is
    standard."""
    secret: Secret | None = None
    """The key that signs messages by Standard Webhooks: `whsec_` and 24 to 64 random bytes as
    base64. Take it from the environment: ${NAME}. Without it, messages are not signed."""
    events: Some[EventKind] | None = None
    """The kinds of events that the receiver gets. The default is all."""

    def key(self) -> bytes | None:
        """Return the key that signs messages; raises ValueError."""
        if self.secret is None:
            return None
        try:
            found = b64decode(self.secret.removeprefix(_PREFIX), validate=True)
        except ValueError:
            found = b""
        if not self.secret.startswith(_PREFIX) or not _SHORTEST <= len(found) <= _LONGEST:
            raise ValueError(
                f"not a Standard Webhooks key; write {_PREFIX} and {_SHORTEST} to {_LONGEST}"
                " random bytes as base64"
            )
        return found


class Notify(SectionModel):
    """The receivers of messages about events, such as the rollback of a cutover."""

    webhooks: dict[Name, Webhook] = Field(min_length=1)
    """The receivers of messages, by name."""
    page: str = ""
    """The URL of the admin port as operators reach it, for links in messages. By default, messages
    have no links."""

    def check(self, mistakes: Mistakes) -> None:
        for name, webhook in self.webhooks.items():
            at = ("notify", "webhooks", name)
            mistakes.attempt(partial(_check_url, webhook.url), *at, "url")
            mistakes.attempt(webhook.key, *at, "secret")
            if webhook.secret is not None and webhook.form != "standard":
                mistakes.add(
                    "chat services do not check signatures; remove it, or remove 'form'",
                    *at,
                    "secret",
                )
        if self.page:
            mistakes.attempt(partial(_check_url, self.page), "notify", "page")


NO_NOTIFY = Notify.model_construct(webhooks={}, page="")


def _check_url(text: str) -> None:
    if not _URL.fullmatch(text):  # the message does not contain the URL, which may be secret
        raise ValueError("not a URL; write one like https://example.com/path")
