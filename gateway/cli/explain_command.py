"""The command `explain`: prints what would happen to a request, and why."""

import os
import time
from argparse import ArgumentParser, Namespace
from ipaddress import ip_address
from pathlib import Path

from gateway.admin.explanation import explain, parse_request
from gateway.config.load import load_file
from gateway.config.text.dates import parse_date


def add_arguments(parser: ArgumentParser) -> None:
    """Add the file, the request, and what is known of its sender and its time."""
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("request", metavar="REQUEST", help="such as 'GET /person/param?version=1'")
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="LINE", help="such as 'Accept: */*'"
    )
    parser.add_argument(
        "--from", dest="peer", default="", metavar="ADDRESS", help="the address that asks"
    )
    parser.add_argument("--at", metavar="TIME", help="such as 2026-12-31; now, unless it is said")
    parser.add_argument(
        "--client", metavar="NAME", help="who asks; without it, whom the request names"
    )


def run(arguments: Namespace) -> int:
    """Print the explanation."""
    head = parse_request(arguments.request, arguments.header)
    now = time.time() if arguments.at is None else parse_date(arguments.at)
    rules = load_file(arguments.file, os.environ)
    print(explain(rules, head, now, _address(arguments.peer), arguments.client))
    return 0


def _address(text: str) -> str:
    try:
        return text and str(ip_address(text))
    except ValueError:
        raise ValueError(f"'{text}' is not an address; write one like 192.0.2.7") from None
