"""The commands beside serving: check, explain, verify, schema, and what operators ask."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from gateway import __version__
from gateway.admin.explanation import explain, parse_request
from gateway.cli.admin_client import AdminRefusedError, AdminUnreachableError
from gateway.cli.operator_commands import add_commands
from gateway.config.editor_schema import json_schema
from gateway.config.load import check_file, load_file
from gateway.config.text.dates import parse_date
from gateway.config.text.mistakes import ConfigError, report
from gateway.settings import SettingError, from_environment
from gateway.state.state_changes import StateError

_NAME = "version-gateway"


def run(words: Sequence[str]) -> int | None:
    """Run a command and return its exit status: 0 done, 1 refused, 2 wrongly asked.

    Args:
        words: of the command line, the program's name left out.

    Returns:
        None where they ask to serve.

    Raises:
        SystemExit: they ask for help, or are no command.
    """
    arguments = _parser().parse_args(words)
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads us has seen enough. What is left goes nowhere, so that leaving cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    except (
        SettingError,
        StateError,
        AdminUnreachableError,
        AdminRefusedError,
        ValueError,
    ) as error:
        print(error, file=sys.stderr)
        return 2
    return status


def _run(arguments: argparse.Namespace) -> int | None:
    match arguments.command:
        case "check":
            snapshot, warnings = check_file(arguments.file, os.environ)
            # Imported here: a gateway that serves needs no memory for OpenAPI documents.
            from gateway.verify.field_check import check_fields

            warnings += check_fields(arguments.file, os.environ, snapshot)
            if arguments.strict and warnings:
                raise ConfigError(str(arguments.file), warnings)
            for line in report(str(arguments.file), warnings):
                print(line)
            print(f"{arguments.file}: {snapshot.summary}")
        case "explain":
            head = parse_request(arguments.request, arguments.header)
            now = time.time() if arguments.at is None else parse_date(arguments.at)
            rules = load_file(arguments.file, os.environ)
            print(explain(rules, head, now, _address(arguments.peer), arguments.client))
        case "schema":
            print(json.dumps(json_schema(), indent=2))
        case "verify":
            return _verify(arguments)
        case "usage" | "brownout" | "cutover" | "shadow":
            text, status = arguments.run(arguments)
            print(text)
            return int(status)
        case _:
            return None
    return 0


def _address(text: str) -> str:
    try:
        return text and str(ip_address(text))
    except ValueError:
        raise ValueError(f"'{text}' is not an address; write one like 192.0.2.7") from None


def _verify(arguments: argparse.Namespace) -> int:
    # What generates and validates costs memory and time that a gateway that serves need not pay.
    try:
        from gateway.cli import verify_command
    except ModuleNotFoundError as error:
        raise ValueError(
            f"verify needs {error.name}, which is not installed; install version-gateway[verify],"
            " or what requirements/verify.txt lists, as `make verify` does"
        ) from None

    path = arguments.file or from_environment(os.environ).config
    try:
        rules = load_file(path, os.environ)
    except ConfigError as error:
        raise ValueError(str(error)) from None  # nothing failed, for nothing could be tried
    return verify_command.run(rules, path, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gateway" if Path(sys.argv[0]).name == "__main__.py" else _NAME,
        description="The version gateway.",
        epilog="The environment says where to listen and which rules to load: GATEWAY_HOST,"
        " GATEWAY_PORT, GATEWAY_ADMIN_HOST, GATEWAY_ADMIN_PORT, GATEWAY_CONFIG,"
        " GATEWAY_WORKERS, GATEWAY_GRACE.",
    )
    parser.add_argument("--version", action="version", version=f"{_NAME} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="answer requests; this is what no command does too")
    check = commands.add_parser("check", help="say what is wrong with a file of rules")
    check.add_argument("--strict", action="store_true", help="refuse what is warned of")
    check.add_argument("file", type=Path, metavar="FILE")
    why = commands.add_parser("explain", help="say what would happen to a request, and why")
    why.add_argument("file", type=Path, metavar="FILE")
    why.add_argument("request", metavar="REQUEST", help="such as 'GET /person/param?version=1'")
    why.add_argument(
        "-H", "--header", action="append", default=[], metavar="LINE", help="such as 'Accept: */*'"
    )
    why.add_argument(
        "--from", dest="peer", default="", metavar="ADDRESS", help="the address that asks"
    )
    why.add_argument("--at", metavar="TIME", help="such as 2026-12-31; now, unless it is said")
    why.add_argument(
        "--client", metavar="NAME", help="who asks; without it, whom the request names"
    )
    commands.add_parser("schema", help="print the JSON Schema of the rules, for editors")
    proof = commands.add_parser(
        "verify", help="prove the conversions by the OpenAPI documents of the versions"
    )
    proof.add_argument("file", type=Path, nargs="?", metavar="FILE")
    proof.add_argument("--api", metavar="NAME", help="only this API")
    proof.add_argument(
        "--between", nargs=2, metavar="VERSION", help="only from the one version to the other"
    )
    proof.add_argument(
        "--examples", type=int, default=100, metavar="N", help="for each claim; without it, 100"
    )
    proof.add_argument(
        "--seed", type=int, default=0, metavar="N", help="another one gives other examples"
    )
    proof.add_argument("--json", action="store_true", help="print one JSON document")
    add_commands(commands)
    return parser
