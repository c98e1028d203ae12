"""The command `verify`: prints the proofs of the conversions, with an exit status for CI."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.base.mistakes import ConfigError
from gateway.cli.shared.arguments import add_rules_file, rules_file
from gateway.routing.snapshot import Snapshot
from gateway.rules.load import load_file

if TYPE_CHECKING:
    from gateway.verify.verification_report import VerificationResult
    from gateway.verify.verify import Progress

HELP = "prove the conversions by the OpenAPI documents of the versions"
# The line must not wrap, or it could not be replaced.
_WIDTH = 79


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "Exit status: 0 every claim holds; 1 a claim fails; 2 the result is incomplete."
    add_rules_file(parser)
    parser.add_argument("--api", metavar="NAME", help="only this API")
    parser.add_argument(
        "--between", nargs=2, metavar="VERSION", help="only the conversions between these versions"
    )
    parser.add_argument(
        "--examples", type=int, default=100, metavar="N", help="the number for each claim; 100"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="selects other examples")
    parser.add_argument(
        "--seconds", type=float, metavar="N", help="test no more claims after N seconds"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: Namespace) -> int:
    """Verify and print; return 0 if all is proven, 1 if something fails, 2 if nothing is known."""
    try:
        from gateway.verify import verification_report  # noqa: F401 an optional extra
    except ModuleNotFoundError as error:
        raise ValueError(
            f"verify needs {error.name}, which is not installed; install version-gateway[verify],"
            " or what requirements/verify.txt lists, as `make verify` does"
        ) from None
    path = rules_file(arguments)
    try:
        rules = load_file(path, os.environ)
    except ConfigError as error:
        raise ValueError(str(error)) from None  # nothing failed, for nothing could be tried
    return _verify(rules, path, arguments)


def _verify(snapshot: Snapshot, path: Path, arguments: Namespace) -> int:
    from gateway.verify import verification_report
    from gateway.verify.claims import Unchecked, Undocumented, Unmatched
    from gateway.verify.openapi.openapi import DocumentError
    from gateway.verify.proof import Unproven
    from gateway.verify.verify import VerifyError, VerifyOptions, verify

    options = VerifyOptions(
        arguments.api,
        tuple(arguments.between) if arguments.between else None,
        arguments.examples,
        arguments.seed,
        arguments.seconds,
    )
    progress = _ProgressLine()
    results: list[VerificationResult] = []

    def found() -> "Iterator[VerificationResult]":
        for result in verify(snapshot, path.parent, options, progress.show):
            progress.clear()
            results.append(result)
            yield result

    try:
        for line in (
            verification_report.json(found())
            if arguments.json
            else verification_report.text(found())
        ):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    except (DocumentError, VerifyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not all(result.holds for result in results):
        return 1
    if any(isinstance(result, Unproven | Undocumented) for result in results):
        return 2
    return 2 if all(isinstance(result, Unchecked | Unmatched) for result in results) else 0


class _ProgressLine:
    """A line on a terminal that shows which claim is being tested."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()

    def show(self, progress: "Progress") -> None:
        if self._shows:
            text = f"{progress.number} of {progress.count}: {progress.claim.operation}"
            sys.stderr.write(f"\r\x1b[K{text[:_WIDTH]}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
