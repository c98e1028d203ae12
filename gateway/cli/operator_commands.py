"""Commands of operators that ask a gateway that runs, or the state that one has left."""

import os
import re
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from gateway.admin.cutover_report import CutoverReport
from gateway.admin.cutover_report import cutover_table as cutover_table
from gateway.admin.operator import check_known
from gateway.admin.retirement import WITHIN, Verdict, sentence, verdict
from gateway.admin.shadow_report import ShadowReport
from gateway.admin.shadow_report import shadow_table as shadow_table
from gateway.admin.usage_report import UsageReport, usage, usage_table
from gateway.cli.admin_client import AdminClient
from gateway.config.load import load_file
from gateway.core.overrides import VersionKey
from gateway.settings import from_environment
from gateway.state.active_overrides import overrides_of
from gateway.state.state_changes import StateChanges
from gateway.state.totals import Totals

_STATUS = {"yes": 0, "no": 1, "unknown": 2}
_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?%?", re.ASCII)
# What a command says, and its exit status.
Said = tuple[str, int]


def add_commands(commands: Any) -> None:
    """Add the operators' commands to argparse's own collection of them."""
    parser = commands.add_parser("usage", help="say who calls what, and what can be retired")
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
    parser.set_defaults(run=_usage)

    brownout = _group(commands, "brownout", "pause brownouts, at once")
    for name, method, about in (
        ("pause", "PUT", "stop refusing, at once"),
        ("resume", "DELETE", "go by the rules again"),
        ("show", "GET", "say whether they are paused"),
    ):
        _served(brownout, name, about).set_defaults(run=_asking(method, "brownouts", _brownout))

    cutover = _group(commands, "cutover", "see and set how much of a version is cut over")
    _served(cutover, "show", "say how much is").set_defaults(
        run=_asking("GET", "cutovers", _cutover)
    )
    parser = _served(cutover, "set", "set how much is, at once")
    parser.add_argument("percent", metavar="PERCENT", help="from 0 to 100, such as 5 or 5%%")
    parser.set_defaults(run=_asking("PUT", "cutovers", _cutover))
    parser = _served(cutover, "clear", "go by the rules again")
    parser.set_defaults(run=_asking("DELETE", "cutovers", _cutover))

    shadow = _group(commands, "shadow", "say how answers of a version differ")
    _served(shadow, "show", "say how they do").set_defaults(run=_asking("GET", "shadows", _shadow))
    _served(shadow, "reset", "forget what was found, and begin anew").set_defaults(
        run=_asking("DELETE", "shadows", _shadow)
    )


def _group(commands: Any, name: str, about: str) -> Any:
    parser = commands.add_parser(name, help=about)
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def _served(actions: Any, name: str, about: str) -> ArgumentParser:
    parser: ArgumentParser = actions.add_parser(name, help=about)
    parser.add_argument("api", metavar="API")
    parser.add_argument("version", metavar="VERSION")
    return parser


def _asking(
    method: str, what: str, usage_table: Callable[[bytes], str]
) -> Callable[[Namespace], Said]:
    def ask(arguments: Namespace) -> Said:
        percent = getattr(arguments, "percent", None)
        content = None if percent is None else {"percent": _percentage(percent)}
        remote = AdminClient(from_environment(os.environ))
        answer = remote.ask(method, what, arguments.api, arguments.version, content=content)
        return usage_table(answer), 0

    return ask


def _percentage(text: str) -> float:
    found = _PERCENT.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is no percentage; write it like 5 or 5%, from 0 to 100")
    return float(found[1])


def _brownout(answer: bytes) -> str:
    found = msgspec.json.decode(answer, type=_Brownout)
    how = "are paused" if found.paused else "go by the rules"
    return f"Brownouts of version {found.version} of {found.api} {how}."


def _cutover(answer: bytes) -> str:
    return cutover_table(msgspec.json.decode(answer, type=CutoverReport))


def _shadow(answer: bytes) -> str:
    return shadow_table(msgspec.json.decode(answer, type=ShadowReport))


class _Brownout(msgspec.Struct):
    api: str
    version: str
    paused: bool


def _usage(arguments: Namespace) -> Said:
    if arguments.retire is not None:
        found = (_retire_online if arguments.state is None else _retire_offline)(arguments)
        return _json(found) if arguments.json else sentence(found), _STATUS[found.answer]
    if arguments.state is None:
        wanted = {"api": arguments.api, "version": arguments.version}
        query = urlencode({name: value for name, value in wanted.items() if value is not None})
        answer = AdminClient(from_environment(os.environ)).ask("GET", "usage", query=query)
        listed = msgspec.json.decode(answer, type=UsageReport)
    else:
        listed = usage(Totals(_read(arguments.state)), arguments.api, arguments.version)
    return _json(listed) if arguments.json else usage_table(listed), 0


def _retire_online(arguments: Namespace) -> Verdict:
    remote = AdminClient(from_environment(os.environ))
    known = msgspec.json.decode(remote.ask("GET", "versions"), type=dict[str, list[str]])
    api, version = _meant(arguments, known)
    answer = remote.ask(
        "GET", "retire", api, version, query=urlencode({"within": arguments.within})
    )
    return msgspec.json.decode(answer, type=Verdict)


def _retire_offline(arguments: Namespace) -> Verdict:
    rules = load_file(from_environment(os.environ).config, os.environ)
    key = _meant(arguments, rules.labels)
    check_known(key, rules)
    records = _read(arguments.state)
    overrides = overrides_of(records.documents)
    return verdict(key, Totals(records), rules, overrides, now=time.time(), within=arguments.within)


def _meant(arguments: Namespace, known: Mapping[str, Sequence[str]]) -> VersionKey:
    """Return the version that is meant; an API that is not named is the only one to have it."""
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
    from gateway.state.sqlite_store import SqliteStore

    store = SqliteStore(path, watching=True)
    try:
        return store.read()
    finally:
        store.close()


def _json(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
