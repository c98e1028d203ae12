"""The implementation of the command `verify`, which needs the libraries of the extra `verify`."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from gateway.routing.snapshot import Snapshot
from gateway.verify import verification_report
from gateway.verify.additional_parts import AdditionalParts
from gateway.verify.claims import Claim, Unproved
from gateway.verify.openapi.openapi import DocumentError
from gateway.verify.verification_report import VerificationResult
from gateway.verify.verify import VerifyError, VerifyOptions, verify

# The maximum width of the progress line. A longer line could wrap and not be overwritten.
_WIDTH = 79


def verify_and_print(snapshot: Snapshot, path: Path, arguments: Namespace, started: float) -> int:
    options = VerifyOptions(
        arguments.api,
        tuple(arguments.between) if arguments.between else None,
        arguments.examples,
        arguments.seed,
        arguments.seconds,
        arguments.operation,
        started,
    )
    progress = _ProgressLine()
    results: list[VerificationResult] = []

    def found() -> Iterator[VerificationResult]:
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
    if any(verification_report.is_incomplete(result) for result in results):
        return 2
    untested = (Unproved, AdditionalParts)
    return 2 if all(isinstance(result, untested) for result in results) else 0


class _ProgressLine:
    """A line on a terminal that shows the claim that is being tested."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()

    def show(self, claim: Claim, number: int, count: int) -> None:
        if self._shows:
            text = f"{number} of {count}: {claim.operation}"
            sys.stderr.write(f"\r\x1b[K{text[:_WIDTH]}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
