"""The command `notify`: lists notifications, and sends a test message."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

import msgspec

from gateway.base.mistakes import printable
from gateway.cli.shared.arguments import add_actions, add_connection, add_reason, print_json
from gateway.cli.shared.remote import AdminClient, read_answer, reason_query
from gateway.process.settings import Settings

HELP = "list the messages to webhooks, and send a test message"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 1 a webhook refused a test message; 2 the command is used wrongly, or"
        " the gateway cannot be reached."
    )
    actions = add_actions(parser)
    actions.add_parser("show", help="list the latest messages and their delivery")
    testing = actions.add_parser(
        "test", help="send a test message; status 1 if a webhook refuses it"
    )
    testing.add_argument("webhook", metavar="WEBHOOK", nargs="?", help="only to this webhook")
    add_reason(testing)
    for action in actions.choices.values():
        add_connection(action)


def run(arguments: Namespace) -> int:
    admin = AdminClient(Settings.from_environment(os.environ))
    if arguments.action == "show":
        answer = admin.ask("GET", "notifications")
        table = notification_text(read_answer(answer, list[dict[str, Any]]))
        print(msgspec.json.format(answer, indent=2).decode() if arguments.json else table)
        return 0
    query = {"webhook": arguments.webhook or None, **reason_query(arguments)}
    answer = admin.ask("POST", "notifications", "test", query=query)
    results = read_answer(answer, list[dict[str, str]])
    if arguments.json:
        print_json(results)
    for result in () if arguments.json else results:
        print(f"{result['webhook']}: {result['error'] or 'sent'}")
    return 1 if any(result["error"] for result in results) else 0


def notification_text(notifications: Sequence[Mapping[str, Any]]) -> str:
    return (
        "\n".join(line for one in notifications for line in _lines(one))
        or "No notification has been sent yet."
    )


def _lines(one: Mapping[str, Any]) -> Iterator[str]:
    yield f"{one['at']}  {one['kind']}"
    yield from _wrapped(one["text"])
    for each in one["deliveries"]:
        state, error = each["state"], each["error"]
        if state == "waiting" and error:
            state = f"{error}; again at {each['due']}"
        elif state == "failed":
            state = f"failed: {error}"
        yield from _wrapped(f"{each['webhook']}: {state}")


def _wrapped(text: str) -> list[str]:
    return wrap(printable(text), 80, initial_indent="  ", subsequent_indent="    ")
