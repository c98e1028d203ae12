"""The command `check`: reports the mistakes in a configuration file."""

import gc
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path

from gateway.base.mistakes import ConfigError, Issue, in_order, report
from gateway.cli.shared.arguments import add_rules_file, print_json, rules_file
from gateway.rules.checks.conversions import check_conversions
from gateway.rules.load import check_file

HELP = "list the mistakes in a configuration, and what its conversions lose"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 1 there are mistakes, or with --strict warnings. Losses with allow_loss"
        " are listed and never change the exit status."
    )
    parser.add_argument("--strict", action="store_true", help="treat warnings as mistakes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_rules_file(parser)


def run(arguments: Namespace) -> int:
    """Print warnings and a summary; raises ConfigError for mistakes or, with --strict, warnings."""
    gc.disable()  # documents have many objects and no cycles; this saves a quarter of the time
    file = rules_file(arguments)
    try:
        snapshot, warnings = check_file(file, os.environ)
        warnings += check_conversions(file, os.environ, snapshot)
        refused = [warning for warning in warnings if not warning.is_allowed]
        if arguments.strict and refused:
            raise ConfigError(str(file), refused)
    except ConfigError as error:
        if not arguments.json:
            raise
        print_json({"mistakes": _listed(file, error.issues), "warnings": []})
        return 1
    if arguments.json:
        print_json({"mistakes": [], "warnings": _listed(file, in_order(warnings))})
        return 0
    for line in report(str(file), in_order(warnings)):
        print(line)
    print(f"{file}: {snapshot.summary}")
    return 0


def _listed(file: Path, issues: Iterable[Issue]) -> list[dict[str, object]]:
    return [
        {
            "file": str(file.parent / one.file) if one.file else str(file),
            "line": one.line,
            "column": one.column,
            "place": one.place,
            "text": one.text,
        }
        for one in issues
    ]
