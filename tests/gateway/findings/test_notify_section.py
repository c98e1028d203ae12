"""Webhooks: which events they get, in which form, and with which key."""

from base64 import b64decode
from typing import get_args

from gateway.base.notify_rules import (
    NOBODY,
    EventKind,
    MessageForm,
    NotifyRules,
    Webhook,
)
from gateway.findings.notify_section import EventName
from tests.gateway.rules.rules import RULES, loaded, report

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOTIFY = """\
notify:
  page: https://gateway.example.com/
  webhooks:
    ops: { url: "${URL}", secret: "${HOOK}", events: [cutover.rolled_back, replica.lost] }
    chat: { url: "http://chat.example.com", form: slack }
"""


def test_nobody_gets_word_by_default() -> None:
    assert loaded(RULES).notify is NOBODY


def test_webhooks() -> None:
    found = loaded(NOTIFY + RULES, URL="https://ops.example.com/?a=b", HOOK=KEY).notify
    key = b64decode(KEY.removeprefix("whsec_"))
    some = frozenset({EventKind.CUTOVER_ROLLED_BACK, EventKind.REPLICA_LOST})
    ops = Webhook("ops", "https://ops.example.com/?a=b", MessageForm.STANDARD, key, some)
    every = frozenset(EventKind)
    chat = Webhook("chat", "http://chat.example.com", MessageForm.SLACK, None, every)
    assert found == NotifyRules((ops, chat), "https://gateway.example.com")


def test_each_kind_of_event_can_be_named() -> None:
    assert {*get_args(EventName)} == {*EventKind}


def test_no_report_has_the_secret() -> None:
    found = report(NOTIFY + RULES, URL="ftp://secret.example", HOOK="whsec_secret")
    assert len(found) == 2
    assert not any("secret.example" in line or "whsec_secret" in line for line in found)
