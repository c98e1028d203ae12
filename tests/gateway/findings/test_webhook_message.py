"""Messages are signed as Standard Webhooks has it, and no name in them is markup."""

import json
from base64 import b64decode

import msgspec

from gateway.base.notify_rules import EventKind, MessageForm, Webhook
from gateway.findings.notification import Notification
from gateway.findings.webhook_message import message, signature

KEY = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
LINK = "https://page/"
ONE = Notification(
    "evt_1", "replica.lost", 5.0, "b", "It & <https://evil> are *lost*.", "person", "1", LINK
)


def webhook(form: MessageForm, key: bytes | None = None) -> Webhook:
    return Webhook("ops", "http://ops", form, key, frozenset(EventKind))


def test_a_signature() -> None:
    """The example of the reference implementations."""
    found = signature(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_standard_form() -> None:
    body, fields = message(ONE, webhook(MessageForm.STANDARD, KEY), 7.9)
    assert json.loads(body) == {
        "type": "replica.lost",
        "timestamp": "1970-01-01T00:00:05Z",
        "data": {
            "subject": "b",
            "text": ONE.text,
            "api": "person",
            "version": "1",
            "link": LINK,
        },
    }
    assert (fields["webhook-id"], fields["webhook-timestamp"]) == ("evt_1", "7")
    assert fields["webhook-signature"] == signature(KEY, "evt_1", "7", body)
    plain = Notification("evt_1", "task.failed", 5.0, "b", "It failed.", "", "", "")
    body, fields = message(plain, webhook(MessageForm.STANDARD), 7.0)
    assert json.loads(body)["data"] == {"subject": "b", "text": "It failed."}
    assert "webhook-signature" not in fields


def test_slack() -> None:
    body, _ = message(ONE, webhook(MessageForm.SLACK), 7.0)
    text = "It &amp; &lt;https://evil&gt; are *lost*."
    assert json.loads(body) == {"text": f"{text} <{LINK}>"}
    plain = msgspec.structs.replace(ONE, text="e", link="")
    body, _ = message(plain, webhook(MessageForm.SLACK), 7.0)
    assert json.loads(body) == {"text": "e"}


def test_teams() -> None:
    body, _ = message(ONE, webhook(MessageForm.TEAMS), 7.0)
    (attachment,) = json.loads(body)["attachments"]
    card = attachment["content"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert card["body"][0]["inlines"] == [{"type": "TextRun", "text": ONE.text}]
    assert card["actions"][0]["url"] == LINK
