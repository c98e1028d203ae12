"""The command `check`: reports the mistakes in a file of rules."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from gateway.config.load import check_file
from gateway.config.text.mistakes import ConfigError, in_order, report
from gateway.verify.checks.conversion_check import check_conversions


def add_arguments(parser: ArgumentParser) -> None:
    """Add `--strict` and the file."""
    parser.add_argument("--strict", action="store_true", help="refuse what is warned of")
    parser.add_argument("file", type=Path, metavar="FILE", help="the rules, such as gateway.yaml")


def run(arguments: Namespace) -> int:
    """Print the warnings and a summary; raises ConfigError for mistakes."""
    snapshot, warnings = check_file(arguments.file, os.environ)
    warnings += check_conversions(arguments.file, os.environ, snapshot)
    if arguments.strict and warnings:
        raise ConfigError(str(arguments.file), warnings)
    for line in report(str(arguments.file), in_order(warnings)):
        print(line)
    print(f"{arguments.file}: {snapshot.summary}")
    return 0
