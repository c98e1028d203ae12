"""The command `verify`: prints the report; its exit status is for CI."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from gateway.core.snapshot import Snapshot
from gateway.verify import verification_report
from gateway.verify.claim import Unchecked, Unmatched
from gateway.verify.hint_trial import HintTrial
from gateway.verify.openapi.openapi import DocumentError
from gateway.verify.verification_report import VerificationResult
from gateway.verify.verify import VerifyError, VerifyOptions, verify


def run(snapshot: Snapshot, path: Path, arguments: argparse.Namespace) -> int:
    """Verify, print, and return 0 if all is proven, 1 if something fails, 2 if it cannot be said.

    Args:
        snapshot: the rules.
        path: where they are from, next to which documents are.
        arguments: of the command line: api, between, examples, seed, json.
    """
    options = VerifyOptions(
        arguments.api,
        tuple(arguments.between) if arguments.between else None,
        arguments.examples,
        arguments.seed,
    )
    results: list[VerificationResult] = []

    def found() -> Iterator[VerificationResult]:
        for result in verify(snapshot, path.parent, options):
            results.append(result)
            yield result

    advise = HintTrial(path, os.environ).hint
    try:
        for line in (
            verification_report.json(found(), advise)
            if arguments.json
            else verification_report.text(found(), advise)
        ):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    except (DocumentError, VerifyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if all(isinstance(result, Unchecked | Unmatched) for result in results):
        return 2
    return 0 if all(result.holds for result in results) else 1
