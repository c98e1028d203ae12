"""Messages: the body and the header fields that a webhook gets for a notification.

A message of the standard form has a type, a timestamp and data, and is signed, as the specification
of Standard Webhooks asks: HMAC-SHA256 over its id, the time of the attempt and the body.
"""

from base64 import b64encode
from hashlib import sha256
from hmac import new as hmac
from typing import NamedTuple

import msgspec

from gateway import __version__
from gateway.base.notify_rules import MessageForm, Webhook
from gateway.findings.formatting import format_time
from gateway.findings.notification import Notification

_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class WebhookMessage(NamedTuple):
    """What is posted."""

    body: bytes
    fields: dict[str, str]


def message(one: Notification, webhook: Webhook, now: float) -> WebhookMessage:
    """Return what a webhook gets, at the time of this attempt in seconds since 1970."""
    body = msgspec.json.encode(_content(one, webhook.form))
    stamp = str(int(now))
    fields = {
        "Content-Type": "application/json",
        "User-Agent": f"version-gateway/{__version__}",
        "webhook-id": one.id,
        "webhook-timestamp": stamp,
    }
    if webhook.key is not None:
        fields["webhook-signature"] = signature(webhook.key, one.id, stamp, body)
    return WebhookMessage(body, fields)


def signature(key: bytes, identity: str, stamp: str, body: bytes) -> str:
    """Return the signature of a message, by its id, the time of the attempt and its body."""
    signed = b".".join((identity.encode(), stamp.encode(), body))
    return f"v1,{b64encode(hmac(key, signed, sha256).digest()).decode()}"


def _content(one: Notification, form: MessageForm) -> object:
    if form is MessageForm.SLACK:
        text = one.text.translate(_SLACK)
        return {"text": f"{text} <{one.link}>" if one.link else text}
    if form is MessageForm.TEAMS:
        return _card(one)
    data = {
        "subject": one.subject,
        "text": one.text,
        **({"api": one.api, "version": one.version} if one.api else {}),
        **({"link": one.link} if one.link else {}),
    }
    return {"type": one.kind, "timestamp": format_time(one.at), "data": data}


def _card(one: Notification) -> object:
    text: dict[str, object] = {
        "type": "RichTextBlock",  # a TextBlock would read names as Markdown
        "inlines": [{"type": "TextRun", "text": one.text}],
    }
    card: dict[str, object] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [text],
    }
    if one.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": one.link}]
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
