"""The interface of a command, its parser, and arguments that several commands have."""

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, NoReturn, Protocol

from gateway.process.settings import Settings

_RULES = "the configuration file; default: GATEWAY_CONFIG, or gateway.yaml"


class Command(Protocol):
    HELP: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, arguments: Namespace) -> int:
        """Run the command; return the exit status: 0 done, 1 refused, 2 wrong usage.

        An action for which these have another meaning sets the default `wrong` of its parser: the
        status where it cannot be done.

        Raises:
            ConfigError: the rules cannot be used.
            StateError: the state cannot be used.
            CommandError: the command cannot be done.
            ValueError: an argument or a setting cannot be used.
        """
        ...


class CommandError(Exception):
    """A command failed; the text has the reason and the remedy."""


class CommandParser(ArgumentParser):
    """A parser, also of commands and actions; its default `wrong` is the status of wrong use."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse words; exit at an unknown one, with the usage of the action that it was given to.

        argparse would report it with the usage of the whole command line, which has no options.
        """
        arguments, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return arguments, []

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(self.get_default("wrong") or 2, f"{self.prog}: error: {message}\n")


def add_rules_file(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help=_RULES)


def rules_file(arguments: Namespace) -> Path:
    """Return the file of rules of a command; may raise SettingError."""
    named: Path | None = arguments.file
    return named or Settings.from_environment(os.environ).config


def add_actions(parser: ArgumentParser) -> Any:
    """Return argparse's collection of the actions of a command, one of which is required."""
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def add_version_action(
    actions: Any, name: str, about: str, *, changes: bool = False
) -> ArgumentParser:
    """Add an action on one version of an API, and return its parser.

    Args:
        actions: the collection of `add_actions`.
    """
    parser: ArgumentParser = actions.add_parser(name, help=about)
    parser.add_argument("api", metavar="API", help="the name of the API")
    parser.add_argument("version", metavar="VERSION", help="the version, as in gateway.yaml")
    if changes:
        add_reason(parser)
    return parser


def add_reason(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--why", metavar="TEXT", help="the reason, for the audit log; needed if 'admin' is set"
    )
