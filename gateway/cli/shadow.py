"""The command `shadow`: prints or resets the differences that a version's shadow has found."""

from argparse import ArgumentParser, Namespace

import msgspec

from gateway.admin.reports import ShadowReport, shadow_table
from gateway.cli.shared.arguments import add_actions, add_version_action
from gateway.cli.shared.remote import ask_version, read_answer

HELP = "show how the responses of a version differ"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 2 the command is used wrongly, or the gateway cannot be reached."
    )
    actions = add_actions(parser)
    showing = add_version_action(actions, "show", "show how responses differ")
    showing.add_argument(
        "--replica",
        metavar="NAME",
        help="only the differences that this replica has found since it started; send the"
        " command to that replica",
    )
    showing.set_defaults(method="GET")
    about = "delete the differences found so far"
    resetting = add_version_action(actions, "reset", about, changes=True)
    resetting.set_defaults(method="DELETE")


def run(arguments: Namespace) -> int:
    answer = ask_version(arguments.method, "shadows", arguments)
    table = shadow_table(read_answer(answer, ShadowReport))
    print(msgspec.json.format(answer, indent=2).decode() if arguments.json else table)
    return 0
