"""`usage import`: counts what went past the gateway, by the access log of a front proxy."""

import asyncio
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.command import CommandError
from gateway.config.load import load_file
from gateway.core.snapshot import Snapshot
from gateway.settings import Settings
from gateway.state.state_store import extra_missing

if TYPE_CHECKING:
    from gateway.export.access_log.log_import import LogImport


def add_import_arguments(parser: ArgumentParser) -> None:
    """Add the file, and whose it is."""
    parser.add_argument("file", type=Path, metavar="FILE", help="in the format of 'export envoy'")
    parser.add_argument(
        "--follow", action="store_true", help="go on with what is added, until it is stopped"
    )
    parser.add_argument(
        "--source", metavar="NAME", help="the front proxy, as 'bypass' has it; the only one there"
    )


def import_log(arguments: Namespace, settings: Settings) -> int:
    """Add what a log has to the sums; print what was read."""
    rules = load_file(settings.config, os.environ)
    if not (rules.state or "").startswith("postgres"):
        raise CommandError(
            "usage import adds to a state in PostgreSQL, in one transaction with how far the log"
            " was read; a file has one writer, the gateway; name a database in 'state'"
        )
    name = _source(arguments.source, rules)
    # The driver of PostgreSQL is memory that no other command needs.
    try:
        from gateway.export.access_log.log_import import LogImport
    except ModuleNotFoundError as error:
        raise extra_missing("PostgreSQL", error, "postgresql") from None
    assert rules.state is not None
    reading = LogImport(rules.state, arguments.file, name, rules.naming, _tell)
    try:
        asyncio.run(_run(reading, follow=arguments.follow))
    except OSError as error:
        raise CommandError(f"{arguments.file} cannot be read: {error.strerror}") from None
    lines, straight, unreadable = reading.counts
    print(
        f"{arguments.file}: {lines} lines, of which {straight} went straight to services"
        f" and {unreadable} are no entries"
    )
    return int(unreadable > 0)


def _source(name: str | None, rules: Snapshot) -> str:
    known = ", ".join(rules.front_proxies)
    if not known:
        raise CommandError("the rules name no front proxies; name them: bypass: [envoy]")
    if name is None and len(rules.front_proxies) == 1:
        return rules.front_proxies[0]
    if name not in rules.front_proxies:
        given = "" if name is None else f"'{name}' is no front proxy of the rules; "
        raise CommandError(f"{given}name one with --source: {known}")
    return name


async def _run(reading: "LogImport", *, follow: bool) -> None:
    task = asyncio.ensure_future(reading.run(follow=follow))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


def _tell(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
