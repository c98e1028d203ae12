"""The command `brownout`: pauses, resumes or shows the brownouts of a version."""

from argparse import ArgumentParser, Namespace

import msgspec

from gateway.cli.shared.arguments import add_actions, add_version_action, print_json
from gateway.cli.shared.remote import ask_version, read_answer

HELP = "pause brownouts, at once"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 2 the command is used wrongly, or the gateway cannot be reached."
    )
    actions = add_actions(parser)
    for name, method, about in (
        ("pause", "PUT", "stop refusing, at once"),
        ("resume", "DELETE", "return to the configuration"),
        ("show", "GET", "show whether they are paused"),
    ):
        action = add_version_action(actions, name, about, changes=method != "GET")
        action.set_defaults(method=method)


class _Brownout(msgspec.Struct):
    api: str
    version: str
    paused: bool


def run(arguments: Namespace) -> int:
    answer = ask_version(arguments.method, "brownouts", arguments)
    found = read_answer(answer, _Brownout)
    if arguments.json:
        print_json(msgspec.to_builtins(found))
        return 0
    state = "are paused" if found.paused else "follow the configuration"
    print(f"Brownouts of version {found.version} of {found.api} {state}.")
    return 0
