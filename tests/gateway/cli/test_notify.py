"""The command `notify` prints notifications in 80 columns, with the state of each delivery."""

from typing import Any

from gateway.cli.notify import notification_text

LONG = "Version 1 of person was rolled back: " + "errors (5xx): 4 of 7 requests failed; " * 5


def delivery(webhook: str, state: str, due: str | None, error: str) -> dict[str, Any]:
    return {"webhook": webhook, "state": state, "attempts": 1, "due": due, "error": error}


def notification(text: str, *deliveries: dict[str, Any]) -> dict[str, Any]:
    when = "2026-11-22T11:22:08Z"
    return {"at": when, "kind": "cutover.rolled_back", "text": text, "deliveries": [*deliveries]}


def test_an_empty_list_of_notifications_prints_one_sentence() -> None:
    assert notification_text([]) == "No notification has been sent yet."


def test_the_state_of_each_delivery_is_shown() -> None:
    waits = delivery("ops", "waiting", "2026-11-22T11:22:20Z", "it responded with status 503")
    table = notification_text(
        [
            notification("It was.", delivery("ops", "sent", None, "")),
            notification(
                "It was.", waits, delivery("chat", "failed", None, "it responded with status 410")
            ),
            notification("It was.", delivery("ops", "waiting", "2026-11-22T11:22:08Z", "")),
        ]
    )
    head = "2026-11-22T11:22:08Z  cutover.rolled_back\n  It was.\n"
    assert table == (
        f"{head}  ops: sent\n"
        f"{head}  ops: it responded with status 503; again at 2026-11-22T11:22:20Z\n"
        "  chat: failed: it responded with status 410\n"
        f"{head}  ops: waiting"
    )


def test_lines_fit_80_columns_and_are_printable() -> None:
    sent = delivery("ops", "failed", None, f"it answered \x1b[2J{LONG}")
    table = notification_text([notification(LONG, sent)])
    assert max(map(len, table.splitlines())) <= 80
    assert " ".join(table.split()).count(LONG.strip()) == 2
    assert "\x1b" not in table
    assert "\\x1b[2J" in table
