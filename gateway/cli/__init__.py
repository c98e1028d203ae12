"""The command line. Each module of this package is one command with the interface `Command`.

Only the module of the requested command is imported. `--help` imports all modules.
"""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import cast

from gateway import __version__
from gateway.base.descriptors import open_standard_streams
from gateway.base.files import MAX_BYTES
from gateway.base.mistakes import ConfigError
from gateway.cli.shared.arguments import (
    Command,
    CommandError,
    CommandParser,
    connection_variables,
)
from gateway.rules.variables import parse_environment
from gateway.store.state import StateError

_NAME = "version-gateway"
COMMANDS = sorted(module.name for module in iter_modules(__path__) if not module.ispkg)
# The error numbers of writes to a full disk.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the command and returns its exit status; raises SystemExit."""
    known = bool(words) and words[0] in COMMANDS
    parser = parsers([words[0]] if known else COMMANDS)
    if not known:
        _add_completion(parser)
    try:
        arguments = parser.parse_args(words)
    except BrokenPipeError:  # the reader of a completion, such as `head`, has closed the pipe
        _discard_output()
        sys.exit()
    return partial(_run, command_named(arguments.command or "serve"), arguments)


def parsers(names: Iterable[str] = COMMANDS) -> CommandParser:
    is_module = Path(sys.argv[0]).name == "__main__.py" and "--print-completion" not in sys.argv
    parser = CommandParser(
        prog="python -m gateway" if is_module else _NAME,
        description="The version gateway. Without a command, it serves.",
        epilog="The environment sets where to listen and which configuration to load: GATEWAY_HOST,"
        " GATEWAY_PORT, GATEWAY_ADMIN_HOST, GATEWAY_ADMIN_PORT,"
        " GATEWAY_ADMIN_HOSTS, GATEWAY_CONFIG,"
        " GATEWAY_WORKERS, GATEWAY_GRACE, GATEWAY_SHADOW_LOAD, GATEWAY_REPLICA,"
        " GATEWAY_OVERRIDES_FILE."
        " Commands that connect to a gateway also read GATEWAY_ADMIN_TOKEN, "
        "GATEWAY_ADMIN_TOKEN_FILE and GATEWAY_ADMIN_CA.",
    )
    parser.add_argument("--version", action="version", version=f"{_NAME} {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in names:
        command = command_named(name)
        own = commands.add_parser(name, help=command.HELP)
        if name != "schema":
            own.add_argument(
                "--env",
                type=Path,
                metavar="FILE",
                help="read variables that are missing in the environment from NAME=value"
                " lines of this file",
            )
        command.add_arguments(own)
    return parser


def _add_completion(parser: CommandParser) -> None:
    # shtab derives completions for bash, zsh and tcsh from the parser. Commands do not need it.
    import shtab

    shtab.add_argument_to(
        parser,
        "--print-completion",
        help="print a script for bash, zsh, tcsh, fish or powershell that completes words",
    )
    unseen: list[argparse.ArgumentParser] = [parser]
    while unseen:
        for action in unseen.pop()._actions:  # noqa: SLF001  # argparse has no public list
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            if action.dest == "print_completion":
                action.metavar = "SHELL"  # all shells would be too long in the usage
            if isinstance(action.choices, dict):
                unseen += action.choices.values()


def command_named(name: str) -> Command:
    return cast(Command, import_module(f"{__name__}.{name}"))


def _run(command: Command, arguments: argparse.Namespace) -> int:
    open_standard_streams()
    try:
        if getattr(arguments, "env", None) is not None:
            _add_variables(arguments.env)
        os.environ.update(connection_variables(arguments))
        status = command.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()  # the reader, such as `head`, has closed the pipe
        return getattr(arguments, "wrong", 0)
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        _discard_output()
        print(f"the output cannot be written: {error.strerror}; is its disk full?", file=sys.stderr)
        return getattr(arguments, "wrong", 2)
    except KeyboardInterrupt:
        print(file=sys.stderr)  # do not overwrite the progress line, if there is one
        return 128 + signal.SIGINT  # the exit status that shells use
    except ConfigError as error:
        print(error, file=sys.stderr)
        return getattr(arguments, "wrong", 1)
    except (CommandError, StateError, ValueError) as error:
        print(error, file=sys.stderr)
        return getattr(arguments, "wrong", 2)
    return status


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version() -> str:
    """Return the version, with a note if the modules in `tool.compile` are compiled."""
    hot = find_spec("gateway.routing.plan")
    compiled = hot is not None and not str(hot.origin).endswith(".py")
    return f"{__version__} (compiled)" if compiled else __version__


def _add_variables(path: Path) -> None:
    """Add the variables in a file to the environment; raises CommandError.

    Variables that are already set keep their values, as in Docker Compose.
    """
    try:
        with path.open("rb") as file:  # a device may have no end
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(
            f"{path} cannot be read: {error.strerror}; set --env to a file of NAME=value lines"
        ) from None
    if len(content) > MAX_BYTES:
        raise CommandError(
            f"{path} is larger than {MAX_BYTES // 2**20} MiB; set --env to a file of NAME=value "
            f"lines"
        )
    for name, value in parse_environment(content, str(path)).items():
        os.environ.setdefault(name, value)
