"""A contract: a version's document, held against its live answers."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from gateway.proxy.body import surrogates
from gateway.verify.answer_sample import AnswerSample
from gateway.verify.claim import matching
from gateway.verify.openapi.document_source import fetch
from gateway.verify.openapi.openapi import Description, Operation
from gateway.verify.openapi.validation import Validator


async def load(location: str, folder: Path) -> "Contract":
    """Return the contract that the document at a location is; raises BadDocument."""
    return Contract((await fetch([location], folder))[location])


class Contract:
    """One document, its schemas compiled as they are needed."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._validators: dict[tuple[str, str, str | None], Validator | None] = {}

    def violations(self, sample: AnswerSample) -> list[tuple[str, str]]:
        """Return the fields, and the keywords of JSON Schema that they violate.

        An answer that the document does not speak of violates nothing.
        """
        validator = self._validator(sample)
        if validator is None:
            return []
        body = surrogates.replace(sample.body) or sample.body
        found = validator.violations(msgspec.json.decode(body))
        return [(violation.field, violation.keyword) for violation in found]

    def _validator(self, sample: AnswerSample) -> Validator | None:
        operation = next(self._operations(sample), None)
        if operation is None:
            return None
        key = (operation.method, operation.path, operation.key(sample.status))
        if key not in self._validators:
            schema = operation.response(sample.status)
            self._validators[key] = None if schema is None else Validator(schema)
        return self._validators[key]

    def _operations(self, sample: AnswerSample) -> Iterator[Operation]:
        operations = [
            operation
            for operation in matching(sample.endpoint, sample.route.version, self._description)
            if operation.method == sample.method
        ]
        # Where an endpoint leads to several, the path that was asked for tells, the literal first.
        if len(operations) > 1:
            path = sample.target.partition("?")[0]
            operations = [operation for operation in operations if operation.takes(path)]
        yield from sorted(operations, key=lambda operation: operation.path.count("{"))
