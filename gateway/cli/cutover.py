"""The command `cutover`: shows or sets the percentage of a cutover, or waits for a percentage."""

import os
import re
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from datetime import timedelta

import msgspec

from gateway.admin.reports import CutoverReport, cutover_table
from gateway.cli.shared.arguments import add_actions, add_version_action, print_json
from gateway.cli.shared.remote import AdminUnreachableError, ask_version, read_answer
from gateway.findings.formatting import format_time
from gateway.rollout.cutovers import DecidedBy

HELP = "show and set the percentage of a cutover"
_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?%?", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)([smh])", re.ASCII)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_INTERVAL = 1.0
# The maximum seconds between two output lines if the output is not a terminal. CI services cancel
# jobs that print nothing for minutes.
_SILENCE = 60.0
_BAR = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0; 2 the command is used wrongly, or the gateway cannot be reached."
        " `wait` exits with 0 when the percentage is reached, 1 when gates or an operator"
        " rolled the cutover back, 2 after --timeout, and 64 when it cannot wait."
    )
    actions = add_actions(parser)
    add_version_action(
        actions, "show", "show the percentage, the gates and what follows"
    ).set_defaults(method="GET")
    setting = add_version_action(actions, "set", "set the percentage, at once", changes=True)
    setting.add_argument("percent", metavar="PERCENT", help="from 0 to 100, such as 5 or 5%%")
    setting.set_defaults(method="PUT")
    promoting = add_version_action(actions, "promote", "go to the next step, at once", changes=True)
    promoting.set_defaults(method="POST")
    clearing = add_version_action(actions, "clear", "return to the configuration", changes=True)
    clearing.set_defaults(method="DELETE")
    waiting = add_version_action(
        actions,
        "wait",
        "wait until the percentage is reached",
    )
    waiting.add_argument(
        "--until", metavar="PERCENT", default="100", help="from 0 to 100; 100 by default"
    )
    waiting.add_argument(
        "--timeout", metavar="DURATION", default="2h", help="such as 90s, 30m or 2h; 2h by default"
    )
    # With EX_USAGE (sysexits.h), scripts can distinguish a wrong command from a late cutover.
    waiting.set_defaults(method="GET", wrong=os.EX_USAGE)


def run(arguments: Namespace) -> int:
    if arguments.action == "wait":
        return _wait(arguments, _percentage(arguments.until), _seconds(arguments.timeout))
    content = {"percent": _percentage(arguments.percent)} if arguments.method == "PUT" else None
    _print(_ask(arguments, content), arguments)
    return 0


def _print(found: CutoverReport, arguments: Namespace) -> None:
    if arguments.json:
        print_json(msgspec.to_builtins(found))
    else:
        print(cutover_table(found))


def _ask(arguments: Namespace, content: object = None) -> CutoverReport:
    answer = ask_version(arguments.method, "cutovers", arguments, content)
    return read_answer(answer, CutoverReport)


def _wait(arguments: Namespace, until: float, seconds: float) -> int:
    """Wait for a percentage; return 0 if it is reached, 1 after a rollback, 2 after the timeout."""
    if until > 100:
        raise ValueError("'--until' must be from 0 to 100")
    deadline = time.monotonic() + seconds
    # The first request is not retried: if it fails, the address is probably wrong.
    found = _ask(arguments)
    progress, moved = _Progress(found, deadline, json=arguments.json), False
    while True:
        # If an operator sets 0%, this is a rollback, unless the cutover has never been above 0%.
        moved = moved or found.percent > 0
        back = moved and found.state == DecidedBy.OPERATOR and not found.percent
        if back or found.state == DecidedBy.ROLLED_BACK:
            progress.end(f"rolled back: {found.why}")
            return 1
        if found.percent >= until:
            progress.end(f"{found.percent:g}% is reached")
            return 0
        left = deadline - time.monotonic()
        if left <= 0:
            progress.end(f"{until:g}% is not reached within {seconds:g} s: it {found.next}")
            return 2
        time.sleep(min(_INTERVAL, left))
        try:
            found = _ask(arguments)
        except AdminUnreachableError as error:  # the gateway may be restarting
            progress.show(found, str(error))
        else:
            progress.show(found, found.next)


class _Progress:
    """Shows the progress of a cutover.

    On a terminal, one line is rewritten. Otherwise, a line is printed for each change. With
    `--json`, only the last report is printed.
    """

    def __init__(self, found: CutoverReport, deadline: float, *, json: bool) -> None:
        self._found, self._json = found, json
        self._name = f"{found.api} {found.version}"
        self._deadline = deadline
        self._live = sys.stdout.isatty()
        self._shown: object = None
        self._spoke = 0.0
        self.show(found, found.next)

    def show(self, found: CutoverReport, text: str) -> None:
        self._found = found
        if self._json:
            return
        # If an operator set the percentage, `why` already says so.
        known = found.state == DecidedBy.OPERATOR
        decided = found.why if known else f"{found.state.replace('_', ' ')}: {found.why}"
        state = "" if found.state == DecidedBy.RULES else f" {decided};"
        if self._live:
            done = round(found.percent / 100 * _BAR)
            bar = "#" * done + "-" * (_BAR - done)
            left = timedelta(seconds=max(round(self._deadline - time.monotonic()), 0))
            clock = f"{left} left"
            self._rewrite(f"{self._name} [{bar}] {found.percent:g}%, {clock};{state} {text}")
            return
        news = found.percent, found.state, found.why
        if news != self._shown or time.monotonic() - self._spoke >= _SILENCE:
            self._shown, self._spoke = news, time.monotonic()
            print(f"{_now()} {self._name}: {found.percent:g}%;{state} {text}", flush=True)

    def end(self, text: str) -> None:
        if self._json:
            print_json({**msgspec.to_builtins(self._found), "result": text})
            return
        if self._live:
            self._rewrite("")
        print(f"{_now()} {self._name}: {text}", flush=True)

    def _rewrite(self, line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        # The control sequence EL (ECMA-48) erases the rest of the previous line.
        sys.stdout.write(f"\r{line[:width]}\x1b[K")
        sys.stdout.flush()


def _now() -> str:
    return format_time(time.time())


def _percentage(text: str) -> float:
    found = _PERCENT.fullmatch(text)
    if found is None:
        raise ValueError(
            f"'{text}' is not a percentage; write a number from 0 to 100, such as 5 or 5%"
        )
    return float(found[1])


def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is not a duration; write it like 90s, 30m or 2h")
    return float(found[1]) * _UNITS[found[2]]
