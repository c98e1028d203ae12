"""The command `cutover`: shows and sets the percentage of a cutover of a running gateway."""

import re
from argparse import ArgumentParser, Namespace

import msgspec

from gateway.admin.cutover_report import CutoverReport, cutover_table
from gateway.cli.admin_client import ask_version
from gateway.cli.command import add_actions, add_version_action

_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?%?", re.ASCII)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = add_actions(parser)
    add_version_action(actions, "show", "say how much is").set_defaults(method="GET")
    setting = add_version_action(actions, "set", "set how much is, at once")
    setting.add_argument("percent", metavar="PERCENT", help="from 0 to 100, such as 5 or 5%%")
    setting.set_defaults(method="PUT")
    add_version_action(actions, "clear", "go by the rules again").set_defaults(method="DELETE")


def run(arguments: Namespace) -> int:
    """Do the action and print the state."""
    content = {"percent": _percentage(arguments.percent)} if arguments.method == "PUT" else None
    answer = ask_version(arguments.method, "cutovers", arguments, content)
    print(cutover_table(msgspec.json.decode(answer, type=CutoverReport)))
    return 0


def _percentage(text: str) -> float:
    found = _PERCENT.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is no percentage; write it like 5 or 5%, from 0 to 100")
    return float(found[1])
