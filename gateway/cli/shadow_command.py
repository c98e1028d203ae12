"""The command `shadow`: prints the differences that the shadow of a version found."""

from argparse import ArgumentParser, Namespace

import msgspec

from gateway.admin.shadow_report import ShadowReport, shadow_table
from gateway.cli.admin_client import ask_version
from gateway.cli.command import add_actions, add_version_action


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = add_actions(parser)
    add_version_action(actions, "show", "say how they do").set_defaults(method="GET")
    add_version_action(actions, "reset", "forget what was found, and begin anew").set_defaults(
        method="DELETE"
    )


def run(arguments: Namespace) -> int:
    """Do the action and print the differences."""
    answer = ask_version(arguments.method, "shadows", arguments)
    print(shadow_table(msgspec.json.decode(answer, type=ShadowReport)))
    return 0
