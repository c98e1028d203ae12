"""The list of messages as the command prints it."""

from gateway.findings.notify_report import DeliveryLine, NotifyLine, notify_table

LONG = "Version 1 of person was rolled back: " + "errors (5xx): 4 of 7 requests failed; " * 5


def line(text: str, *deliveries: DeliveryLine) -> NotifyLine:
    """Return an event of which word is sent."""
    when, what = "2026-11-22T11:22:08Z", ("person 1", text, "person", "1")
    return NotifyLine("evt_1", "cutover.rolled_back", when, *what, [*deliveries])


def test_nothing() -> None:
    assert notify_table([]) == "No word was sent yet."


def test_how_far_it_got() -> None:
    waits = DeliveryLine("ops", "waiting", 1, "2026-11-22T11:22:20Z", "it answered 503")
    table = notify_table(
        [
            line("It was.", DeliveryLine("ops", "sent", 1, None, "")),
            line("It was.", waits, DeliveryLine("chat", "failed", 8, None, "it answered 410")),
            line("It was.", DeliveryLine("ops", "waiting", 0, "2026-11-22T11:22:08Z", "")),
        ]
    )
    head = "2026-11-22T11:22:08Z  cutover.rolled_back\n  It was.\n"
    assert table == (
        f"{head}  ops: sent\n"
        f"{head}  ops: it answered 503; again at 2026-11-22T11:22:20Z\n"
        "  chat: failed: it answered 410\n"
        f"{head}  ops: waiting"
    )


def test_it_fits_a_terminal() -> None:
    """Nor does anything of a service or a webhook move its cursor."""
    sent = DeliveryLine("ops", "failed", 8, None, f"it answered \x1b[2J{LONG}")
    table = notify_table([line(LONG, sent)])
    assert max(map(len, table.splitlines())) <= 80
    assert " ".join(table.split()).count(LONG.strip()) == 2
    assert "\x1b" not in table
    assert "\\x1b[2J" in table
