"""The command `schema`: prints the JSON Schema of the configuration."""

import json
from argparse import ArgumentParser, Namespace

from gateway.rules.editor_schema import json_schema

HELP = "print the JSON Schema of the configuration, for editors"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0."


def run(_: Namespace) -> int:
    print(json.dumps(json_schema(), indent=2))
    return 0
