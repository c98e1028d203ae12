"""The command `verify`: proves the conversions, prints the results, and sets an exit status."""

import gc
import os
import time
from argparse import ArgumentParser, Namespace

from gateway.base.extras import install
from gateway.base.mistakes import ConfigError
from gateway.cli.shared.arguments import add_rules_file, rules_file
from gateway.rules.load import load_file

HELP = "verify the conversions against the OpenAPI documents of the versions"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 every claim holds; 1 a claim fails; 2 the result is incomplete."
    add_rules_file(parser)
    parser.add_argument("--api", metavar="NAME", help="only this API")
    parser.add_argument(
        "--operation", metavar="OPERATION", help='only this operation, such as "GET /orders/{id}"'
    )
    parser.add_argument(
        "--between", nargs=2, metavar="VERSION", help="only the conversions between these versions"
    )
    parser.add_argument(
        "--examples", type=int, default=100, metavar="N", help="the number for each claim; 100"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="selects other examples")
    parser.add_argument(
        "--seconds", type=float, metavar="N", help="test no more claims after N seconds"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: Namespace) -> int:
    """Return 0 if all claims hold, 1 if a claim fails, 2 if the result is incomplete."""
    started = time.monotonic()
    try:
        # This imports the libraries of the extra, which takes half a second.
        from gateway.cli.shared.verifying import verify_and_print
    except ModuleNotFoundError as error:
        raise ValueError(f"verify needs {error.name}, {install('verify')}") from None
    gc.set_threshold(100_000)  # documents have many objects and few cycles
    path = rules_file(arguments)
    try:
        rules = load_file(path, os.environ)
    except ConfigError as error:
        raise ValueError(str(error)) from None  # exit status 2: no claim was tested
    return verify_and_print(rules, path, arguments, started)
