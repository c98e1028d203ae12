"""The command `explain`: prints how the gateway would handle a request, and why."""

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from gateway.admin.body_trace import ExplainedBody
from gateway.admin.explanation import (
    facts,
    facts_text,
    field_lines,
    parse_address,
    parse_fields,
    parse_request,
)
from gateway.base.dates import parse_date
from gateway.cli.shared.arguments import add_rules_file, print_json, rules_file
from gateway.cli.shared.offline import declared_parts, read_body
from gateway.rules.load import load_file

HELP = "show how a request would be handled, and why"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 1 the gateway would refuse the request or its body, or the file cannot be"
        " used; 2 the command is used wrongly."
    )
    add_rules_file(parser)
    parser.add_argument("request", metavar="REQUEST", help="such as 'GET /loans?version=1'")
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="LINE", help="such as 'Accept: */*'"
    )
    parser.add_argument(
        "--from", dest="peer", default="", metavar="ADDRESS", help="the address of the client"
    )
    parser.add_argument("--at", metavar="TIME", help="such as 2026-12-31; the default is now")
    parser.add_argument(
        "--client", metavar="NAME", help="the client's name; default: the name in the request"
    )
    parser.add_argument(
        "--body", type=Path, metavar="FILE", help="show this body after each change; - is the input"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list of facts")
    parser.add_argument(
        "--base",
        type=Path,
        metavar="FILE",
        help="the service's current document, which a write is merged into (writes: merge)",
    )
    parser.add_argument(
        "--status", type=int, metavar="N", help="treat the body as a response with this status"
    )


def run(arguments: Namespace) -> int:
    now = time.time() if arguments.at is None else parse_date(arguments.at)
    file = rules_file(arguments)
    rules = load_file(file, os.environ)
    head = parse_request(arguments.request, arguments.header, rules)
    body = None
    if arguments.body is not None:
        parts = declared_parts(file, rules)
        fields = arguments.header if arguments.status is None else ()
        lines = tuple(field_lines(parse_fields(fields, rules)))
        content = read_body(arguments.body, rules.limits)
        base = None if arguments.base is None else read_body(arguments.base, rules.limits)
        body = ExplainedBody(content, arguments.status, parts, lines, base)
    elif arguments.base is not None:
        raise ValueError("--base needs the body of the write; add --body FILE")
    elif arguments.status is not None:
        raise ValueError("--status needs the body of the response; add --body FILE")
    found = facts(rules, head, now, parse_address(arguments.peer), arguments.client, body)
    if arguments.json:
        print_json([{"name": name, "fact": fact} for name, fact in found])
    else:
        print(facts_text(rules, head, found))
    return 1 if any(name == "answer" and fact[0] in "45" for name, fact in found) else 0
