"""The interface and the parser of commands, and arguments that several commands share."""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, NoReturn, Protocol
from urllib.parse import urlsplit

from gateway.process.settings import Settings

_RULES = "the configuration file; default: GATEWAY_CONFIG, or gateway.yaml"


class Command(Protocol):
    HELP: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, arguments: Namespace) -> int:
        """Run the command; return the exit status: 0 success, 1 refused, 2 wrong usage.

        If an action uses these statuses with another meaning, it sets the default `wrong` of its
        parser. The exit status after wrong usage or an error is then `wrong`.

        Raises:
            ConfigError: the configuration is invalid or cannot be read.
            StateError: the state cannot be read or changed.
            CommandError: the command failed.
            ValueError: an argument or a setting is invalid.
        """
        ...


class CommandError(Exception):
    """A command failed. The message contains the reason and a suggested fix."""


class CommandParser(ArgumentParser):
    """The parser of the whole command line, of a command, or of an action.

    If the default `wrong` of the parser is set, it is the exit status after wrong usage.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse arguments; for an unknown argument, print the usage of the action and exit.

        argparse itself would print the usage of the whole command line, without the options of the
        action.
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
    """Return the path of the configuration; raises SettingError if a variable is invalid."""
    named: Path | None = arguments.file
    return named or Settings.from_environment(os.environ).config


def add_actions(parser: ArgumentParser) -> Any:
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def add_version_action(
    actions: Any, name: str, about: str, *, changes: bool = False
) -> ArgumentParser:
    """`changes` is whether the action changes the state and therefore accepts a reason."""
    parser: ArgumentParser = actions.add_parser(name, help=about)
    parser.add_argument("api", metavar="API", help="the name of the API")
    parser.add_argument("version", metavar="VERSION", help="the version, as in gateway.yaml")
    if changes:
        add_reason(parser)
    add_connection(parser)
    return parser


def add_connection(parser: ArgumentParser) -> None:
    """Add the options of commands that connect to a gateway, and `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--admin",
        metavar="HOST:PORT",
        help="the admin port, or its https:// URL; default: GATEWAY_ADMIN_HOST and _PORT",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with a token of the admin port; default: GATEWAY_ADMIN_TOKEN",
    )


def connection_variables(arguments: Namespace) -> dict[str, str]:
    """Return the options of `add_connection` as environment variables; raises ValueError."""
    found: dict[str, str] = {}
    if getattr(arguments, "admin", None):
        text = arguments.admin
        try:
            url = urlsplit(text if "://" in text else f"http://{text}")
            if not (url.hostname and url.port and url.scheme in ("http", "https")):
                raise ValueError
        except ValueError:
            raise ValueError(f"--admin {text}: write HOST:PORT or https://HOST:PORT") from None
        found |= {"GATEWAY_ADMIN_HOST": url.hostname, "GATEWAY_ADMIN_PORT": str(url.port)}
        if url.scheme == "https" and not os.environ.get("GATEWAY_ADMIN_CA"):
            found["GATEWAY_ADMIN_CA"] = "system"
    if getattr(arguments, "token_file", None):
        found |= {"GATEWAY_ADMIN_TOKEN_FILE": arguments.token_file, "GATEWAY_ADMIN_TOKEN": ""}
    return found


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def add_reason(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--why", metavar="TEXT", help="the reason, for the audit log; needed if 'admin' is set"
    )
