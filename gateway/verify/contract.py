"""A contract: a version's OpenAPI document, to validate the version's live responses by."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from gateway.core.versions.version import Version
from gateway.proxy.body import surrogates
from gateway.verify.answer_sample import AnswerSample
from gateway.verify.located_operation import LocatedOperation, locate
from gateway.verify.openapi.document_source import fetch
from gateway.verify.openapi.openapi import Description, Operation
from gateway.verify.openapi.validation import Validator


async def load(location: str, folder: Path) -> "Contract":
    """Return the contract from the document at a location; raises DocumentError."""
    return Contract((await fetch([location], folder))[location])


class Contract:
    """One OpenAPI document; each schema is compiled when it is first needed."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._located: dict[tuple[str, Version | None], list[LocatedOperation]] = {}
        self._validators: dict[tuple[str, str, str | None], Validator | None] = {}

    def violations(self, sample: AnswerSample) -> list[tuple[str, str]]:
        """Return the fields that violate the schema, each with the keyword of JSON Schema.

        A response that the document does not declare violates nothing.
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
        endpoint, version = sample.endpoint, sample.route.version
        key = (endpoint.template.text, version)
        if key not in self._located:
            self._located[key] = locate((endpoint,), version, self._description)
        operations = [
            located.operation
            for located in self._located[key]
            if located.captures and located.operation.method == sample.method
        ]
        # Where an endpoint leads to several, the path that was asked for decides, literals first.
        if len(operations) > 1:
            path = sample.target.partition("?")[0]
            operations = [operation for operation in operations if operation.takes(path)]
        yield from sorted(operations, key=lambda operation: operation.path.count("{"))
