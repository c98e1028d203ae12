"""The command `usage`: prints the usage of versions, and whether a version can be retired."""

import os
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

import msgspec

from gateway.admin.reports import (
    HistoryReport,
    SetAsideReport,
    UsageReport,
    history_report,
    history_table,
    usage,
    usage_table,
)
from gateway.base.mistakes import suggest
from gateway.base.overrides import VersionKey
from gateway.cli.shared.arguments import add_connection, add_reason
from gateway.cli.shared.offline import location, read_stored
from gateway.cli.shared.remote import AdminClient, read_answer
from gateway.findings.conditions import ANSWERS
from gateway.findings.operator import check_known
from gateway.findings.retirement import WITHIN, Verdict, sentence, verdict
from gateway.process.settings import Settings
from gateway.rules.load import load_file
from gateway.usage.history import HistoryQuery, Resolution
from gateway.verify.live.documented_operations import operation_list, operations_of

HELP = "show which clients call which version, and whether it can be retired"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0; with --retire 0 yes, 1 no, 2 unknown."
    parser.add_argument("--api", help="show only this API")
    parser.add_argument("--version", help="show only this version")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--retire", metavar="VERSION", help="show whether a version can be retired")
    one.add_argument("--history", metavar="VERSION", help="show its requests over time")
    parser.add_argument(
        "--by",
        choices=["day", "minute"],
        help="the interval of one line of --history (default: day)",
    )
    parser.add_argument(
        "--within",
        metavar="TIME",
        help=f"how far back --retire looks: 30d, 12h, 5m, 30s (default: {WITHIN})",
    )
    parser.add_argument(
        "--replica",
        metavar="NAME",
        help="only what this replica has counted since it started; send the command to"
        " that replica",
    )
    add_connection(parser)
    parser.add_argument(
        "--state",
        metavar="WHERE",
        help="read this file or database, in the format of 'state', instead of a running gateway",
    )

    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, about in (
        ("set-aside", "exclude a client from --retire until a date, with a reason"),
        ("include", "include a client that was set aside"),
    ):
        # Keep the values of options before the action.
        action = actions.add_parser(name, help=about, argument_default=SUPPRESS)
        action.add_argument("client", metavar="CLIENT", help="the client, as usage shows it")
        if name == "set-aside":
            action.add_argument("--until", metavar="DATE", required=True, help="such as 2026-12-31")
        add_reason(action)
        add_connection(action)
    parser.set_defaults(why=None)


def run(arguments: Namespace) -> int:
    """The exit status of a verdict is 0 for "yes", 1 for "no" and 2 for "unknown"."""
    settings = Settings.from_environment(os.environ)
    if arguments.action is not None:
        return _set_aside(arguments, settings)
    if arguments.replica is not None and (arguments.state or arguments.history) is not None:
        raise ValueError("--state and --history cover all replicas; remove --replica")
    _refuse_unused(arguments)
    if arguments.state is not None:
        arguments.state = location(arguments.state)
    if arguments.history is not None:
        told = _history(arguments, settings)
        print(_json(told) if arguments.json else history_table(told))
        return 0
    if arguments.retire is None:
        found = _usage(arguments, settings)
        print(_json(found) if arguments.json else usage_table(found))
        return 0
    judged = (_retire_running if arguments.state is None else _retire_stored)(arguments, settings)
    print(_json(judged) if arguments.json else sentence(judged))
    return ANSWERS[judged.answer].status


def _set_aside(arguments: Namespace, settings: Settings) -> int:
    method = "PUT" if arguments.action == "set-aside" else "DELETE"
    query = {"client": arguments.client, "why": arguments.why}
    if method == "PUT":
        query["until"] = arguments.until
    answer = AdminClient(settings).ask(method, "usage", "set-aside", query=query)
    clients = read_answer(answer, list[SetAsideReport])
    if arguments.json:
        print(_json(clients))
        return 0
    for each in clients:
        if each.client == arguments.client:
            print(f"{each.client} is set aside until {each.until}: {each.why}")
            return 0
    print(f"{arguments.client} is counted again.")
    return 0


def _refuse_unused(arguments: Namespace) -> None:
    if arguments.retire is None and arguments.within is not None:
        raise ValueError("--within is only valid with --retire; add --retire, or remove --within")
    if arguments.history is None and arguments.by is not None:
        raise ValueError("--by is only valid with --history; add --history, or remove --by")
    if arguments.version is not None and (arguments.retire or arguments.history) is not None:
        raise ValueError("--retire and --history already name a version; remove --version")


def _usage(arguments: Namespace, settings: Settings) -> UsageReport:
    if arguments.state is not None:
        view, overrides, _ = read_stored(arguments.state)
        return usage(view, arguments.api, arguments.version, overrides.aside(view.now))
    query = {"api": arguments.api, "version": arguments.version, "replica": arguments.replica}
    answer = AdminClient(settings).ask("GET", "usage", query=query)
    return read_answer(answer, UsageReport)


def _history(arguments: Namespace, settings: Settings) -> HistoryReport:
    if arguments.state is not None:
        rules = load_file(settings.config, os.environ)
        key = _version_key(arguments.history, arguments.api, rules.labels)
        check_known(key, rules)
        query = HistoryQuery(Resolution(arguments.by or "day"), key[0])
        history = read_stored(arguments.state, query=query).history
        assert history is not None  # there was a query
        return history_report(history, key)
    admin = AdminClient(settings)
    key = _version_key(arguments.history, arguments.api, _known(admin))
    answer = admin.ask("GET", "history", *key, query={"by": arguments.by or "day"})
    return read_answer(answer, HistoryReport)


def _known(admin: AdminClient) -> dict[str, list[str]]:
    return read_answer(admin.ask("GET", "versions"), dict[str, list[str]])


def _retire_running(arguments: Namespace, settings: Settings) -> Verdict:
    admin = AdminClient(settings)
    key = _version_key(arguments.retire, arguments.api, _known(admin))
    query = {"within": arguments.within or WITHIN, "replica": arguments.replica}
    answer = admin.ask("GET", "retire", *key, query=query)
    return read_answer(answer, Verdict)


def _retire_stored(arguments: Namespace, settings: Settings) -> Verdict:
    rules = load_file(settings.config, os.environ)
    key = _version_key(arguments.retire, arguments.api, rules.labels)
    check_known(key, rules)
    view, overrides, _ = read_stored(arguments.state)
    job = operation_list(rules, key)
    # Imported here, since no other option of `usage` needs an OpenAPI document.
    from gateway.verify.live.document_child import DocumentWork

    result = None if job is None else DocumentWork(settings.config.absolute().parent).result(job)
    documented = None if result is None else operations_of(result)
    within = arguments.within or WITHIN
    return verdict(key, view, rules, overrides, within=within, documented=documented)


def _version_key(version: str, api: str | None, known: Mapping[str, Sequence[str]]) -> VersionKey:
    """Return the key of a version. If no API is given, exactly one API must have the version."""
    if api is not None:
        return api, version
    having = sorted(api for api, versions in known.items() if version in versions)
    if len(having) == 1:
        return having[0], version
    if having:
        raise ValueError(f"{', '.join(having)} have a version '{version}'; name one with --api")
    labels = {label for versions in known.values() for label in versions}
    raise ValueError(f"no API has a version '{version}'; {suggest(version, labels)}")


def _json(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
