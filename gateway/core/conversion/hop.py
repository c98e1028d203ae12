"""Hops: the part of a conversion between two adjacent versions, and which of it a request takes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gateway.core.conversion.operations.operation import MappedOperation, converted_status
from gateway.core.conversion.operations.operation_table import OperationTable
from gateway.core.conversion.version_link import VersionLink
from gateway.core.versions.version import Version


class OperationChoice(NamedTuple):
    """What one request is between two adjacent versions.

    Attributes:
        operation: The operation of the request; None where none is declared for it.
        methods: Its method in both versions, as far as links distinguish methods.
    """

    operation: MappedOperation | None
    methods: frozenset[str]


class Hop(NamedTuple):
    """The part of a conversion between two adjacent versions.

    Attributes:
        source: The version that the hop converts from.
        target: The version that the hop converts to.
        links: The links between the two, in the order of the direction.
        table: The operations as the source has them; None where none are declared.
    """

    source: Version
    target: Version
    links: tuple[VersionLink, ...]
    table: OperationTable | None

    def choice(self, operation: MappedOperation | None, *methods: str) -> OperationChoice:
        """Return what a request with these methods is."""
        known = frozenset().union(*(link.methods for link in self.links if link.methods))
        named = {"GET" if one == "HEAD" and one not in known else one for one in methods}
        return OperationChoice(operation, known & named)

    def chosen(self, choice: OperationChoice) -> Iterator[VersionLink]:
        """Yield the links that apply to a request, for any method and operation."""
        operation, methods = choice
        if operation is not None and operation.statuses:
            older, newer = sorted((self.source, self.target))
            yield VersionLink(older, newer, (), status=operation.statuses)
        for link in self.links:
            here = link.operations is None or operation in link.operations
            if here and (link.methods is None or link.methods & methods):
                yield replace(link, methods=None, operations=None)

    def status(self, method: str, status: int) -> int:
        """Return the status of an answer as the target has it."""
        upwards = self.source < self.target
        for link in self.links:
            if link.operations is None and (link.methods is None or method in link.methods):
                made = converted_status(link.status, status, upwards=upwards)
                if made != status:
                    return made
        return status
