"""The command `fleet`: prints the replicas that share a state, and the audit log."""

import os
from argparse import ArgumentParser, Namespace

import msgspec

from gateway.admin.reports import (
    AuditReport,
    FleetReport,
    audit_table,
    fleet_table,
)
from gateway.cli.shared.arguments import add_actions, add_connection, add_reason
from gateway.cli.shared.remote import AdminClient, read_answer, reason_query
from gateway.process.settings import Settings

HELP = "list the replicas that share a state, and the changes"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 2 the command is used wrongly, or the gateway cannot be reached."
    )
    actions = add_actions(parser)
    actions.add_parser("show", help="list the replicas").set_defaults(ask=("GET", "fleet"))
    forget = actions.add_parser("forget", help="forget a replica that is lost for good")
    forget.add_argument("replica", metavar="REPLICA", help="the name of the replica")
    add_reason(forget)
    forget.set_defaults(ask=("DELETE", "fleet"))
    audit = actions.add_parser("audit", help="list the changes with time, author and reason")
    audit.set_defaults(ask=("GET", "audit"))
    for action in actions.choices.values():
        add_connection(action)


def run(arguments: Namespace) -> int:
    replica = getattr(arguments, "replica", None)
    path = [*arguments.ask[1:], *([replica] if replica else [])]
    admin = AdminClient(Settings.from_environment(os.environ))
    answer = admin.ask(arguments.ask[0], *path, query=reason_query(arguments))
    if arguments.action == "audit":
        table = audit_table(read_answer(answer, list[AuditReport]))
    else:
        table = fleet_table(read_answer(answer, FleetReport))
    print(msgspec.json.format(answer, indent=2).decode() if arguments.json else table)
    return 0
