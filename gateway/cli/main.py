"""The list of commands, and how one of them is run."""

import argparse
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import cast

from gateway import __version__
from gateway.cli.command import Command, CommandError
from gateway.config.text.mistakes import ConfigError
from gateway.state.state_changes import StateError

_NAME = "version-gateway"
COMMANDS = {
    "serve": "answer requests; this is what no command does too",
    "check": "say what is wrong with a file of rules",
    "explain": "say what would happen to a request, and why",
    "schema": "print the JSON Schema of the rules, for editors",
    "verify": "prove the conversions by the OpenAPI documents of the versions",
    "usage": "say who calls what, and what can be retired",
    "brownout": "pause brownouts, at once",
    "cutover": "see and set how much of a version is cut over",
    "shadow": "say how answers of a version differ",
}
"""By name, what each does; the module `gateway.cli.NAME_command` is one, a Command."""


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the command of a command line and returns its exit status.

    Args:
        words: of the command line, without the name of the program.

    Raises:
        SystemExit: they ask for help, or are no command.
    """
    parser = ArgumentParser(
        prog="python -m gateway" if Path(sys.argv[0]).name == "__main__.py" else _NAME,
        description="The version gateway.",
        epilog="The environment says where to listen and which rules to load: GATEWAY_HOST,"
        " GATEWAY_PORT, GATEWAY_ADMIN_HOST, GATEWAY_ADMIN_PORT,"
        " GATEWAY_ADMIN_HOSTS, GATEWAY_CONFIG,"
        " GATEWAY_WORKERS, GATEWAY_GRACE.",
    )
    parser.add_argument("--version", action="version", version=f"{_NAME} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    parsers = {name: commands.add_parser(name, help=about) for name, about in COMMANDS.items()}
    wanted = words[0] if words and words[0] in COMMANDS else "serve"
    # Only the command that is run is imported, with all that it needs.
    command = cast(Command, import_module(f"gateway.cli.{wanted}_command"))
    command.add_arguments(parsers[wanted])
    return partial(_run, command, parser.parse_args(words))


def _run(command: Command, arguments: argparse.Namespace) -> int:
    try:
        status = command.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has seen enough; the rest goes nowhere, so that no flush fails.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    except (CommandError, StateError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return status
