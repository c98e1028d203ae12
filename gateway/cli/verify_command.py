"""The command `verify`: prints what is found; its exit status tells CI."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from gateway.core.snapshot import Snapshot
from gateway.verify import verification_report
from gateway.verify.claim import Gap, Unchecked
from gateway.verify.openapi.openapi import DocumentError
from gateway.verify.proof import Proof
from gateway.verify.verify import Question, UnanswerableError, verify


def run(snapshot: Snapshot, path: Path, arguments: argparse.Namespace) -> int:
    """Verify, print, and return 0 if all is proven, 1 if something fails, 2 if it cannot be said.

    Args:
        snapshot: the rules.
        path: where they are from, next to which documents are.
        arguments: of the command line: api, between, examples, seed, json.
    """
    question = Question(
        arguments.api,
        tuple(arguments.between) if arguments.between else None,
        arguments.examples,
        arguments.seed,
    )
    outcomes: list[Proof | Gap | Unchecked] = []

    def found() -> Iterator[Proof | Gap | Unchecked]:
        for outcome in verify(snapshot, path.parent, question):
            outcomes.append(outcome)
            yield outcome

    try:
        for line in (
            verification_report.json(found())
            if arguments.json
            else verification_report.text(found())
        ):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    except (DocumentError, UnanswerableError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if all(isinstance(outcome, Unchecked) for outcome in outcomes):
        return 2
    return 0 if all(outcome.holds for outcome in outcomes) else 1
