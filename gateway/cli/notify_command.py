"""The command `notify`: lists what word was sent of, and sends a test message."""

import os
from argparse import ArgumentParser, Namespace
from urllib.parse import urlencode

import msgspec

from gateway.cli.admin_client import AdminClient, read_answer
from gateway.cli.command import add_actions, add_reason
from gateway.findings.notify_report import NotifyLine, WebhookTest, notify_table
from gateway.process.settings import Settings


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = add_actions(parser)
    showing = actions.add_parser("show", help="list the latest messages, and how far they got")
    showing.add_argument("--json", action="store_true", help="as JSON")
    testing = actions.add_parser("test", help="send a test message; status 1 if one is not taken")
    testing.add_argument("webhook", metavar="WEBHOOK", nargs="?", help="to this one, not to all")
    add_reason(testing)


def run(arguments: Namespace) -> int:
    """Do the action and print the result."""
    admin = AdminClient(Settings.from_environment(os.environ))
    if arguments.action == "show":
        answer = admin.ask("GET", "notifications")
        table = notify_table(read_answer(answer, list[NotifyLine]))
        print(msgspec.json.format(answer, indent=2).decode() if arguments.json else table)
        return 0
    given = {"webhook": arguments.webhook, "why": arguments.why}
    query = urlencode({name: value for name, value in given.items() if value})
    answer = admin.ask("POST", "notifications", "test", query=query)
    results = read_answer(answer, list[WebhookTest])
    for result in results:
        print(f"{result.webhook}: {result.error or 'sent'}")
    return 1 if any(result.error for result in results) else 0
