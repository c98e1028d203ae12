"""The command `usage`: prints who calls what, and whether a version can be retired."""

import asyncio
import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from gateway.admin.operator import check_known
from gateway.admin.retirement import WITHIN, Verdict, sentence, verdict
from gateway.admin.usage_report import UsageReport, usage, usage_table
from gateway.cli.admin_client import AdminClient
from gateway.config.load import load_file
from gateway.core.overrides import VersionKey
from gateway.settings import Settings
from gateway.state.active_overrides import overrides_of
from gateway.state.state_changes import StateChanges
from gateway.state.state_store import open_store
from gateway.state.totals import Totals

_STATUS = {"yes": 0, "no": 1, "unknown": 2}


def add_arguments(parser: ArgumentParser) -> None:
    """Add what to print, and where it is read."""
    parser.add_argument("--api", help="of this API only")
    parser.add_argument("--version", help="of this version only")
    parser.add_argument("--retire", metavar="VERSION", help="say whether a version can be retired")
    parser.add_argument(
        "--within",
        metavar="TIME",
        default=WITHIN,
        help="how far back that looks: 30d, 12h, 5m, 30s (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="from this file, not from a gateway that runs"
    )


def run(arguments: Namespace) -> int:
    """Print usage, or a verdict with its own exit status: 0 yes, 1 no, 2 unknown."""
    settings = Settings.from_environment(os.environ)
    if arguments.retire is None:
        found = _usage(arguments, settings)
        print(_json(found) if arguments.json else usage_table(found))
        return 0
    judged = (_retire_running if arguments.state is None else _retire_stored)(arguments, settings)
    print(_json(judged) if arguments.json else sentence(judged))
    return _STATUS[judged.answer]


def _usage(arguments: Namespace, settings: Settings) -> UsageReport:
    if arguments.state is not None:
        return usage(Totals(_read(arguments.state)), arguments.api, arguments.version)
    wanted = {"api": arguments.api, "version": arguments.version}
    query = urlencode({name: value for name, value in wanted.items() if value is not None})
    answer = AdminClient(settings).ask("GET", "usage", query=query)
    return msgspec.json.decode(answer, type=UsageReport)


def _retire_running(arguments: Namespace, settings: Settings) -> Verdict:
    admin = AdminClient(settings)
    known = msgspec.json.decode(admin.ask("GET", "versions"), type=dict[str, list[str]])
    query = urlencode({"within": arguments.within})
    answer = admin.ask("GET", "retire", *_version_key(arguments, known), query=query)
    return msgspec.json.decode(answer, type=Verdict)


def _retire_stored(arguments: Namespace, settings: Settings) -> Verdict:
    rules = load_file(settings.config, os.environ)
    key = _version_key(arguments, rules.labels)
    check_known(key, rules)
    state = _read(arguments.state)
    overrides = overrides_of(state.documents)
    return verdict(key, Totals(state), rules, overrides, now=time.time(), within=arguments.within)


def _version_key(arguments: Namespace, known: Mapping[str, Sequence[str]]) -> VersionKey:
    """Return the key of the version to retire; without `--api`, of the only API that has it."""
    version: str = arguments.retire
    if arguments.api is not None:
        return arguments.api, version
    having = sorted(api for api, versions in known.items() if version in versions)
    if len(having) == 1:
        return having[0], version
    if having:
        raise ValueError(f"{', '.join(having)} have a version '{version}'; say which with --api")
    raise ValueError(f"no API has a version '{version}'")


def _read(path: Path) -> StateChanges:
    async def read() -> StateChanges:
        store = open_store(path, read_only=True)
        try:
            return await store.read()
        finally:
            await store.close()

    return asyncio.run(read())


def _json(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
