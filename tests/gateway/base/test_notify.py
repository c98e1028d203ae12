"""Webhooks in gateway.yaml: their events, formats and keys."""

from base64 import b64decode

from gateway.base.notify import NO_NOTIFY, Notify, Webhook
from tests.gateway.rules.rules import RULES, loaded, report

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOTIFY = """\
notify:
  page: https://gateway.example.com/
  webhooks:
    ops: { url: "${URL}", secret: "${HOOK}", events: [cutover.rolled_back, replica.lost] }
    chat: { url: "http://chat.example.com", form: slack }
"""


def test_no_webhook_is_configured_by_default() -> None:
    assert loaded(RULES).notify is NO_NOTIFY


def test_webhooks_are_read_with_their_events_and_keys() -> None:
    found = loaded(NOTIFY + RULES, URL="https://ops.example.com/?a=b", HOOK=KEY).notify
    ops = Webhook(
        url="https://ops.example.com/?a=b",
        secret=KEY,
        events=("cutover.rolled_back", "replica.lost"),
    )
    chat = Webhook(url="http://chat.example.com", form="slack")
    assert found == Notify(webhooks={"ops": ops, "chat": chat}, page="https://gateway.example.com/")
    assert (ops.key(), chat.key()) == (b64decode(KEY.removeprefix("whsec_")), None)


def test_mistakes_do_not_contain_secrets() -> None:
    found = report(NOTIFY + RULES, URL="ftp://secret.example", HOOK="whsec_secret")
    assert len(found) == 2
    assert not any("secret.example" in line or "whsec_secret" in line for line in found)
